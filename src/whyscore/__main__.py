"""`python -m whyscore`."""

import sys

from whyscore.cli.main import main

sys.exit(main())
