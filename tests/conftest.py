"""What all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: the machine may be busy. Repeatable, like everything else here; FUZZ=1 looks at other examples each time.
settings.register_profile("whyscore", deadline=None, derandomize="FUZZ" not in os.environ)
settings.load_profile("whyscore")

# A fault must fail a test, not pass for a message of whyscore.
os.environ["WHYSCORE_DEBUG"] = "1"

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data, beside the project; it does not ship, because its licences do not allow it."""
    data = SHARED / "data"
    if not data.is_dir():
        pytest.skip("the shared data folder is not beside the project")
    return data
