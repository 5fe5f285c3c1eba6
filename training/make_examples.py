"""Write what the networks and trees are trained on: `python training/make_examples.py build/`."""

import argparse
import pickle
import time
from pathlib import Path

import numpy as np

from data import development, training
from prepare import cut_rows, find_components, learn_tables, read_rows
from whyscore.metrics.estimators.learning import FOLDS


def make(folder: Path, step: int, jobs: int) -> None:
    """Read the rows, and write tables, components and examples."""
    start = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    judged = development()
    rows = training(judged)[::step]
    judged = judged[::step]
    cuts = cut_rows(rows)
    print(f"{len(rows)} rows, {len(cuts)} kept, {time.monotonic() - start:.0f} s", flush=True)
    folds = [learn_tables([cut for cut in cuts if cut.fold != fold]) for fold in range(FOLDS)]
    whole = learn_tables(cuts)
    sizes = {name: len(table.keys) for name, table in whole._asdict().items()}
    print(f"tables {sizes}, {time.monotonic() - start:.0f} s", flush=True)
    components = find_components(rows)
    np.savez_compressed(folder / "tables.npz", components=components, **whole.arrays())
    for name, chosen, tables in (("train", cuts, folds), ("dev", cut_rows(judged), [whole])):
        examples = read_rows(chosen, tables, components, jobs=jobs)
        np.savez(folder / f"{name}.npz", **examples._asdict())
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(chosen))
        print(f"{name} {len(chosen)}, {time.monotonic() - start:.0f} s", flush=True)


def main() -> None:
    """Write the examples."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--step", type=int, default=1, help="read every so many rows")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    make(options.folder, options.step, options.jobs)


if __name__ == "__main__":
    main()
