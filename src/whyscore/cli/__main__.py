"""`python -m whyscore.cli`."""

import sys

from whyscore.cli.main import main

sys.exit(main())
