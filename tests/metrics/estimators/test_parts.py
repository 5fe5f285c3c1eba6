"""The estimator's parts give the numbers of the libraries that trained them, and survive a file."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from whyscore.metrics.estimators.network import Batch, make_network, run
from whyscore.metrics.estimators.qe import QE, load
from whyscore.metrics.estimators.tables import Tables, make_table, neighbour_keys, pair_keys, read_tables, word_keys
from whyscore.metrics.estimators.trees import make_trees
from whyscore.types import Segment

TRAINING = Path(__file__).parents[3] / "training"


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the modules of `training/` importable."""
    monkeypatch.syspath_prepend(str(TRAINING))
    for name in ("network", "boost", "train", "prepare", "data"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("training")
def test_network_is_the_one_that_was_trained() -> None:
    torch = pytest.importorskip("torch")
    from network import Network  # type: ignore[import-not-found]

    torch.manual_seed(3)
    trained = Network(7, 5, width=16, heads=2, inner=24, layers=2, dropout=0.1).eval()
    draw = np.random.default_rng(1)
    sizes = [(3, 4), (12, 2), (1, 1)]
    here, there = max(n for n, _ in sizes), max(m for _, m in sizes)
    batch = Batch(
        tuple(draw.normal(size=(3, n, 7)).astype(np.float32) for n in (here, there)),  # type: ignore[arg-type]
        tuple(draw.normal(size=(3, n, 5)).astype(np.float32) for n in (here, there)),  # type: ignore[arg-type]
        draw.uniform(-1, 1, size=(3, here, there)).astype(np.float32),
        (
            np.arange(here) < np.array([n for n, _ in sizes])[:, None],
            np.arange(there) < np.array([m for _, m in sizes])[:, None],
        ),
    )
    tensor = torch.from_numpy
    with torch.no_grad():
        expected = trained(
            tuple(map(tensor, batch.features)),
            tuple(map(tensor, batch.vectors)),
            tensor(batch.cosines),
            tuple(map(tensor, batch.present)),
        )
    found = run(make_network({name: values.numpy() for name, values in trained.state_dict().items()}), batch)
    for side in (0, 1):
        kept = batch.present[side]
        np.testing.assert_allclose(found.words[side][kept], expected[side].numpy()[kept], atol=2e-6)
    np.testing.assert_allclose(found.sentences, expected[2].numpy(), atol=2e-6)


@pytest.mark.usefixtures("training")
def test_trees_are_the_ones_that_were_trained() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    from boost import export  # type: ignore[import-not-found]

    draw = np.random.default_rng(2)
    rows = draw.normal(size=(3000, 6)).astype(np.float32)
    rows[draw.random(rows.shape) < 0.2] = np.nan
    labels = (np.nan_to_num(rows[:, 0]) * np.nan_to_num(rows[:, 1], nan=1.0) > 0) ^ (draw.random(3000) < 0.1)
    model = ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(rows, labels)
    np.testing.assert_allclose(make_trees(export(model)).logits(rows), model.decision_function(rows), atol=1e-5)


def test_tables_find_what_was_put_in() -> None:
    words = [f"word{k}" for k in range(2000)]
    keys = word_keys(words)
    values = np.linspace(-1, 1, 2000, dtype=np.float32)
    table = make_table(keys, [values], -1.0, 1.0)
    assert np.abs(table.look_up(keys)[0] - values).max() <= 1 / 255 + 1e-6
    assert not table.look_up(word_keys(["other", "unseen"])).any()
    assert not make_table(keys[:0], [values[:0]], 0.0, 1.0).look_up(keys).any()
    again = read_tables(Tables(*[table] * 6).arrays())
    np.testing.assert_array_equal(again.source_counts.look_up(keys), table.look_up(keys))


def test_keys_know_case_from_order() -> None:
    dog, dog_again, cat = word_keys(["Dog", "dog", "cat"])
    assert dog == dog_again != cat
    keys = word_keys(["dog", "cat", "dog"])
    assert len(set(neighbour_keys(keys).tolist())) == 2
    assert pair_keys(keys[:1], keys[1:2]) != pair_keys(keys[1:2], keys[:1])
    assert len(neighbour_keys(keys[:1])) == 0


ONE_PROCESS = """
import json, runpy, sys
import prepare

prepare._CHUNK = 64  # several chunks of few rows, so that both processes have some
for name, *arguments in json.loads(sys.argv[1]):
    sys.argv = [name, *arguments]
    runpy.run_path(f"{sys.path[1]}/{name}", run_name="__main__")
"""


def run_scripts(*commands: Sequence[object], hash_seed: int) -> None:
    """Run scripts of `training/`, one after the other in one new process, on one thread."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": str(hash_seed)}
    environment["PYTHONPATH"] = os.pathsep.join([str(TRAINING), *filter(None, [environment.get("PYTHONPATH")])])
    lines = json.dumps([list(map(str, command)) for command in commands])
    subprocess.run([sys.executable, "-c", ONE_PROCESS, lines], env=environment, check=True, capture_output=True)


@pytest.mark.slow
@pytest.mark.usefixtures("shared")
def test_training_anew_gives_the_same_weights(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    digests = []
    for number, folder in enumerate((tmp_path / "once", tmp_path / "again")):
        networks = [folder / f"network-{seed}.npz" for seed in range(2)]
        parts = ("--trees", folder / "trees.npz", "--heads", folder / "heads.npz")
        run_scripts(
            ("make_examples.py", folder, "--step", 500),
            # Batches so small that there are several: weights are averaged at every fourth.
            *(
                ("train.py", folder, network, "--seed", seed, "--epochs", 1, "--words", 800)
                for seed, network in enumerate(networks)
            ),
            ("boost.py", folder, folder / "trees.npz"),
            ("sentences.py", folder, folder / "heads.npz"),
            ("assemble.py", folder, *networks, *parts, "-o", folder / "qe.npz"),
            hash_seed=number,
        )
        digests.append(load(folder / "qe.npz").digest)
    assert digests[0] == digests[1]
    (score,) = QE(model=str(tmp_path / "once" / "qe.npz")).score([Segment("The cat sits .", "Die Katze sitzt .")])
    assert 0 <= score <= 1
