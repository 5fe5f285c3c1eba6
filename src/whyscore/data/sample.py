"""The real data that ship with whyscore: 100 segments of TED talks, Chinese to English, five systems, rated by people.

Each entry has its source, two references, the MQM score (0 is perfect, below is worse) and the error spans that a
professional marked. See NOTICE for where they come from, and `scripts/make_sample.py` for how they were chosen.
"""

from importlib import resources

from whyscore.data.dataset import read_dataset
from whyscore.types import Dataset

FILE = "ted_zhen_sample.jsonl"


def sample() -> Dataset:
    """Return the data set; human scores are called `mqm`."""
    with resources.as_file(resources.files("whyscore") / "data" / FILE) as path:
        return read_dataset(path)
