"""Files of models: where they are looked for, what is read from them, and what stands on top of encoders."""

import json
import os
import re
import sys
import types
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import tiny_models
from whyscore.analysis.explain import explain
from whyscore.errors import DataError, ExecutionError, MissingExtra, SpecError, WhyscoreError
from whyscore.models import checkpoints
from whyscore.models.checkpoints import (
    LicenceWarning,
    ModelLocation,
    coder_of,
    config_of,
    find,
    hyper_parameters,
    licence_of,
    need,
    package,
    read,
    read_json,
    revision,
    warn_of,
    weights_of,
)
from whyscore.models.pairs import (
    Coder,
    Cuts,
    MemoryWarning,
    Pinned,
    Row,
    TruncatedTextWarning,
    as_tensors,
    in_batches,
    shorter,
)
from whyscore.models.tensors import write_tensors
from whyscore.types import Segment

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
import huggingface_hub  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from whyscore.models import heads  # noqa: E402

# Where files are


@pytest.fixture(autouse=True)
def nothing_fetched() -> None:
    checkpoints._fetch_folder.cache_clear()


def refusing(error: Exception) -> object:
    def download(*_: object, **__: object) -> str:
        raise error

    return download


def test_a_local_folder_is_taken_before_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", refusing(AssertionError("asked the hub")))
    assert find(str(tmp_path), ["*"], "comet") == ModelLocation(str(tmp_path), tmp_path, hub=False)


def test_a_hub_name_with_a_revision_is_fetched_at_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, object, object]] = []

    def download(repository: str, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append((repository, revision, allow_patterns))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert find("Unbabel/wmt22-comet-da@v1", ["hparams.yaml"], "comet").folder == tmp_path
    find("roberta-large", ["*.json"], "comet")
    assert asked == [("Unbabel/wmt22-comet-da", "v1", ["hparams.yaml"]), ("roberta-large", None, ["*.json"])]


@pytest.mark.parametrize("name", ["./models/comet", "/models/comet", "../comet", "~/comet", "a/b/c"])
def test_a_path_that_is_not_there_is_never_asked_of_the_hub(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", refusing(AssertionError("asked the hub")))
    with pytest.raises(MissingExtra, match=re.escape(f"comet: no folder {name}. Fetch it with: hf download OWNER/")):
        find(name, ["*"], "comet")


def test_without_network_the_message_ends_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", refusing(FileNotFoundError("no copy here\nlong story")))
    told = "comet: cannot download hparams.yaml of Unbabel/x@v2 (no copy here). Fetch it with: hf download Unbabel/x"
    with pytest.raises(MissingExtra, match=f"^{re.escape(told)}$"):
        find("Unbabel/x@v2", ["hparams.yaml", "README.md"], "comet")


def test_a_gated_model_asks_to_accept_the_licence(monkeypatch: pytest.MonkeyPatch) -> None:
    gated = type("GatedRepoError", (OSError,), {})
    monkeypatch.setattr(huggingface_hub, "snapshot_download", refusing(gated("403")))
    told = "is gated. Accept the licence at https://huggingface.co/Unbabel/XCOMET-XL and log in with: hf auth login"
    with pytest.raises(MissingExtra, match=re.escape(told)):
        find("Unbabel/XCOMET-XL", ["*"], "comet")


def test_pickled_weights_are_fetched_only_where_there_are_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def download(_: str, revision: str | None, allow_patterns: list[str]) -> str:
        assert revision is None
        asked.append(allow_patterns)
        if "pytorch_model.bin" in allow_patterns:
            (tmp_path / "pytorch_model.bin").touch()
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    _, path = weights_of("some/model", checkpoints.NETWORKS, "comet")
    assert path == tmp_path / "pytorch_model.bin"
    assert ["pytorch_model.bin" in patterns for patterns in asked] == [False, True]
    (tmp_path / "model.safetensors").touch()
    assert weights_of("some/model", checkpoints.NETWORKS, "comet")[1] == tmp_path / "model.safetensors"
    assert len(asked) == 2  # the hub is asked once for the same files


def test_the_first_of_several_files_that_is_there_is_taken(tmp_path: Path) -> None:
    home = ModelLocation("wmt22-comet-da", tmp_path, hub=False)
    (tmp_path / "b").touch()
    assert need(home, ["a", "b"], "comet") == tmp_path / "b"
    with pytest.raises(MissingExtra, match=re.escape(f"comet: {tmp_path} has no c or d.")):
        need(home, ["c", "d"], "comet")


def test_an_absent_package_is_an_extra() -> None:
    with pytest.raises(MissingExtra, match=re.escape("comet needs extra packages: pip install 'whyscore[neural]'")):
        package("no_such_package_anywhere", "comet")


# What is in them


TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b": torch.ones(1)}


def same(found: dict[str, torch.Tensor]) -> bool:
    return set(found) == set(TENSORS) and all(torch.equal(found[key], TENSORS[key]) for key in TENSORS)


def test_whole_and_sharded_weights_are_the_same(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "model.safetensors")
    for number, key in enumerate(TENSORS, start=1):
        save_file({key: TENSORS[key]}, tmp_path / f"model-0000{number}-of-00002.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a.weight": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}'
    )
    assert same(read(tmp_path / "model.safetensors", "comet"))
    assert same(read(tmp_path / "model.safetensors.index.json", "comet"))


def test_an_index_must_name_its_shards(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text('{"metadata": {}}')
    with pytest.raises(DataError, match="expected weight_map, the shard of each weight, found None"):
        read(tmp_path / "model.safetensors.index.json", "comet")


def test_a_state_dict_may_be_plain_or_in_a_trainers_wrapping(tmp_path: Path) -> None:
    torch.save(TENSORS, tmp_path / "plain.pth")
    torch.save({"state_dict": TENSORS, "epoch": 2, "hyper_parameters": {"lr": 0.1}}, tmp_path / "model.ckpt")
    assert same(read(tmp_path / "plain.pth", "comet"))
    assert same(read(tmp_path / "model.ckpt", "comet"))


@pytest.mark.parametrize(
    ("pickled", "reason"),
    [
        (b"\x80\x02}r\xff\xff\xff\x3f.", "has place 1073741823 in 9 bytes"),
        (b"\x80\x02}X\x00\x00\x10\x00" + b"a" * 2**20 + b"0.", "a/data.pkl has 1048586 bytes, more than the file"),
    ],
    ids=["places", "packed"],
)
def test_settings_beside_weights_take_no_more_memory_than_the_file(pickled: bytes, reason: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.ckpt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", pickled)
    with pytest.raises(DataError, match=re.escape(f"model.ckpt: is damaged: {reason}")):
        hyper_parameters(tmp_path / "model.ckpt")


def test_the_dictionaries_of_trainers_are_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "pytorch_lightning.utilities.parsing"
    module = types.ModuleType(name)
    attributes = type("AttributeDict", (dict,), {"__module__": name})
    module.AttributeDict = attributes  # type: ignore[attr-defined]
    for part in ("pytorch_lightning", "pytorch_lightning.utilities"):
        monkeypatch.setitem(sys.modules, part, types.ModuleType(part))
    monkeypatch.setitem(sys.modules, name, module)
    torch.save({"state_dict": TENSORS, "hyper_parameters": attributes(lr=0.1)}, tmp_path / "model.ckpt")
    monkeypatch.delitem(sys.modules, name)
    assert same(read(tmp_path / "model.ckpt", "comet"))


@pytest.mark.parametrize("content", [[1, 2], {"a": 3}, {"state_dict": {"a": "text"}}])
def test_a_file_without_named_tensors_is_refused(content: object, tmp_path: Path) -> None:
    torch.save(content, tmp_path / "model.ckpt")
    with pytest.raises(DataError, match=re.escape("holds no weights by name (a state dict)")):
        read(tmp_path / "model.ckpt", "comet")


def test_a_damaged_file_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "model.ckpt").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(DataError, match=re.escape(str(tmp_path / "model.ckpt"))):
        read(tmp_path / "model.ckpt", "comet")
    torch.save(TENSORS, tmp_path / "old.bin", _use_new_zipfile_serialization=False)
    content = (tmp_path / "old.bin").read_bytes()
    storage = re.findall(rb"\d{9,}", content)[-1]  # it is named where it is used, and where its numbers stand
    (tmp_path / "old.bin").write_bytes(content.replace(storage, b"x" * len(storage), 1))
    with pytest.raises(DataError, match=r"old\.bin: is damaged: storage key"):
        read(tmp_path / "old.bin", "comet")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        read_json(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(DataError, match="expected a JSON object, found list"):
        read_json(tmp_path / "config.json")


def test_the_revision_is_the_hubs_commit_or_a_digest_of_the_content(tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshots" / ("0123456789abcdef" * 3)[:40]
    snapshot.mkdir(parents=True)
    assert revision(ModelLocation("x/y", snapshot, hub=True), []) == "0123456789ab"
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(bytes(3_000_000))
    two.write_bytes(bytes(3_000_000))
    home = ModelLocation("x", tmp_path, hub=False)
    assert revision(home, [one]) == revision(home, [two])
    two.write_bytes(bytes(2_999_999) + b"1")
    assert revision(home, [one]) != revision(home, [two])


@pytest.mark.parametrize("place", [0, 70_000, 1_500_000, -1])
def test_every_byte_of_the_weights_decides_the_revision(tmp_path: Path, place: int) -> None:
    file = tmp_path / "model.safetensors"
    content = bytearray(3_000_000)
    file.write_bytes(content)
    state = file.stat()
    home = ModelLocation(str(tmp_path), tmp_path, hub=False)
    before = revision(home, [file])
    content[place] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert revision(home, [file]) != before


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "vocab.txt", "spiece.model", "hparams.yaml"])
def test_what_stands_beside_the_weights_decides_the_revision(tmp_path: Path, name: str) -> None:
    weights, beside = tmp_path / "model.safetensors", tmp_path / name
    weights.write_bytes(b"w")
    beside.write_text("{}")
    home = ModelLocation(str(tmp_path), tmp_path, hub=False)
    before = revision(home, [weights])
    beside.write_text('{"a": 1}')
    assert revision(home, [weights]) != before
    again = revision(home, [weights])
    (tmp_path / "README.md").write_text("A card.")
    assert revision(home, [weights]) == again


def test_the_revision_of_an_index_is_that_of_its_shards(tmp_path: Path) -> None:
    index, shard = tmp_path / "model.safetensors.index.json", tmp_path / "model-00001-of-00001.safetensors"
    index.write_text(f'{{"weight_map": {{"a": "{shard.name}"}}}}')
    home = ModelLocation("x", tmp_path, hub=False)
    shard.write_bytes(b"1")
    before = revision(home, [index])
    shard.write_bytes(b"22")
    assert revision(home, [index]) != before


def test_a_folder_without_a_tokenizer_is_not_given_an_empty_one(tmp_path: Path) -> None:
    tiny_models.save(tmp_path / "x", "xlm-roberta", "XLMRobertaModel", blocks=1)
    home = ModelLocation("./x", tmp_path / "x", hub=False)
    assert config_of(home, "comet").model_type == "xlm-roberta"
    assert coder_of(home, "comet").padding == 1
    for file in (tmp_path / "x").glob("tokenizer*"):
        file.unlink()
    told = f"comet: {tmp_path / 'x'} has no tokenizer.json or sentencepiece.bpe.model or spiece.model or vocab.json"
    with pytest.raises(MissingExtra, match=re.escape(told)):
        coder_of(home, "comet")
    (tmp_path / "x" / "tokenizer.json").write_text("{}")
    with pytest.raises(MissingExtra, match=re.escape(f"comet: {tmp_path / 'x' / 'tokenizer.json'} cannot be read:")):
        coder_of(home, "comet")
    (tmp_path / "x" / "config.json").write_text('{"model_type": "abacus"}')
    with pytest.raises(MissingExtra, match=re.escape("config.json cannot be read:")):
        config_of(home, "comet")
    (tmp_path / "x" / "config.json").unlink()
    with pytest.raises(MissingExtra, match=re.escape(f"comet: {tmp_path / 'x'} has no config.json")):
        config_of(home, "comet")


# Licences


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlicense: CC-BY-NC-SA-4.0\n---\n# Model", "cc-by-nc-sa-4.0"),
        ('---\ntags: []\nlicense: "mit"\n---\n', "mit"),
        ("---\nlicense:\n- mit\n- apache-2.0\nlanguage: en\n---\n", "mit, apache-2.0"),
        ("---\nlicense: other\nlicense_name: house-rules\n---\n", "house-rules"),
        ("# no front matter\nlicense: mit", "apache-2.0"),
        ("---\nlanguage: en\n---\nlicense: mit", "apache-2.0"),
    ],
)
def test_the_card_names_the_licence_before_the_table(card: str, licence: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(card)
    assert licence_of("Unbabel/wmt22-comet-da", tmp_path) == licence


def test_known_weights_have_a_licence_without_a_card(tmp_path: Path) -> None:
    assert licence_of("./models/XCOMET-XL", tmp_path) == "cc-by-nc-sa-4.0"
    assert licence_of("Unbabel/unite-mup@main", tmp_path) == "apache-2.0"
    assert licence_of("somebody/else", tmp_path) == "unknown"


@pytest.mark.parametrize("licence", ["cc-by-nc-sa-4.0", "cc-by-nc-4.0", "cc-nc", "Non-Commercial house rules"])
def test_licences_for_research_only_warn(licence: str) -> None:
    with pytest.warns(LicenceWarning, match="for non-commercial use only"):
        warn_of("m", licence)


@pytest.mark.parametrize("licence", ["apache-2.0", "mit", "unknown", "cc-by-sa-4.0", "ncsa"])
def test_other_licences_do_not(licence: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of("m", licence)


# On top of encoders


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.0, 0.0], [0.5, 0.5]),
        ([3.0, 1.0], [1.0, 0.0]),
        ([0.5, 0.0], [0.75, 0.25]),
        ([1.0, 0.8, -1.0], [0.6, 0.4, 0.0]),
        ([-1.0, 0.8, 1.0], [0.0, 0.4, 0.6]),
        ([7.0], [1.0]),
        ([0.1, 0.1, 0.1, -5.0], [1 / 3, 1 / 3, 1 / 3, 0.0]),
    ],
)
def test_sparsemax_by_hand(scores: list[float], expected: list[float]) -> None:
    assert heads.sparsemax(torch.tensor(scores)).tolist() == pytest.approx(expected, abs=1e-6)


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=30))
def test_sparsemax_is_the_nearest_point_of_the_simplex(scores: list[float]) -> None:
    given_ = torch.tensor(scores, dtype=torch.float64)
    found = heads.sparsemax(given_)
    assert float(found.sum()) == pytest.approx(1, abs=1e-9)
    assert float(found.min()) >= 0
    # Optimality: what was taken off is the same wherever something is left, and at least as little elsewhere.
    taken = given_ - found
    level = taken[found > 0]
    assert float(level.max() - level.min()) == pytest.approx(0, abs=1e-9)
    assert float(taken.max()) <= float(level.max()) + 1e-9


def test_a_mix_weighs_the_states_and_leaves_zero_weights_untouched() -> None:
    broken = torch.full((1, 2, 2), float("nan"))
    mix = heads.mix_of(torch.tensor([5.0, 0.0, 5.0]), torch.tensor([2.0]), "sparsemax", norm=False)
    states = [torch.ones(1, 2, 2), broken, 3 * torch.ones(1, 2, 2)]
    assert heads.mix_states(states, torch.ones(1, 2), mix).tolist() == [[[4.0, 4.0], [4.0, 4.0]]]


def test_normalisation_looks_at_one_sentence_and_its_real_pieces_alone() -> None:
    state = torch.tensor([[[1.0, 3.0], [100.0, 100.0]], [[5.0, 5.0], [9.0, 9.0]]])
    mask = torch.tensor([[1, 0], [1, 1]])
    found = heads.normalise(state, mask)
    assert found[0, 0].tolist() == pytest.approx([-1.0, 1.0])
    assert found[1].flatten().tolist() == pytest.approx([-1.0, -1.0, 1.0, 1.0])


@pytest.mark.parametrize(("how", "expected"), [("avg", [2.0, 0.0]), ("max", [3.0, 1.0]), ("cls", [1.0, 1.0])])
def test_pooling_passes_over_padding(how: heads.Pooling, expected: list[float]) -> None:
    vectors = torch.tensor([[[1.0, 1.0], [3.0, -1.0], [99.0, 99.0]]])
    assert heads.pool_states(vectors, torch.tensor([[1, 1, 0]]), how)[0].tolist() == expected


def test_a_feed_forward_network_ends_in_its_final_activation() -> None:
    layers = ((torch.tensor([[2.0]]), torch.tensor([-3.0])), (torch.tensor([[1.0]]), torch.tensor([1.0])))
    assert float(heads.FeedForward(layers, "ReLU")(torch.tensor([[1.0]]))) == 1.0
    assert float(heads.FeedForward(layers, "Identity")(torch.tensor([[1.0]]))) == 0.0
    assert float(heads.FeedForward(layers, "Identity", "Sigmoid")(torch.tensor([[1.0]]))) == 0.5


# Rows and batches


@pytest.mark.parametrize(
    ("family", "specials"),
    [("xlm-roberta", ((0,), (2, 2), (2,))), ("bert", ((2,), (3,), (3,))), ("mt5", ((), (1,), (1,)))],
)
def test_special_pieces_are_read_off_the_tokenizer(
    family: tiny_models.Family, specials: tuple[tuple[int, ...], ...]
) -> None:
    assert tuple(Coder(tiny_models.tokenizer(family), "x").frame) == specials


def test_three_texts_are_joined_as_two_are() -> None:
    frame = Coder(tiny_models.tokenizer("xlm-roberta"), "x").frame
    assert frame.join([[7], [8, 9], [10]]) == Row((0, 7, 2, 2, 8, 9, 2, 2, 10, 2), 3)
    assert frame.join([[7]]) == Row((0, 7, 2), 3)
    assert (frame.size(1), frame.size(2), frame.size(3)) == (2, 4, 6)


def test_spans_point_into_the_text_as_it_was_given() -> None:
    text = "\u00a0 The cat\n"
    (coded,) = Coder(tiny_models.tokenizer("xlm-roberta"), "x").code([text, text]).values()
    assert [text[start:end].strip() for start, end in coded.spans] == ["The", "cat"]


def test_a_slow_tokenizer_is_refused() -> None:
    class Slow:
        is_fast = False
        pad_token_id = 0

    with pytest.raises(SpecError, match="comet: the model has no fast tokenizer"):
        Coder(Slow(), "comet")  # type: ignore[arg-type]


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 14))
def test_pairs_are_cut_one_piece_at_a_time_from_the_longer(first: int, second: int, room: int) -> None:
    left, right = list(range(first)), list(range(second))
    expected = [list(left), list(right)]
    while sum(map(len, expected)) > room:
        expected[0 if len(expected[0]) > len(expected[1]) else 1].pop()
    assert [list(part) for part in shorter(left, right, room)] == expected


def test_rows_are_padded_at_the_end() -> None:
    found = as_tensors([Row((5, 6, 7), 2), Row((8,), 1)], 1, "cpu")
    assert found.ids.tolist() == [[5, 6, 7], [8, 1, 1]]
    assert found.mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert found.types.tolist() == [[0, 0, 1], [0, 1, 1]]


def test_answers_come_in_the_order_asked_and_batches_keep_their_budget() -> None:
    lengths = [3, 10, 1, 7, 7, 2]
    batches: list[list[int]] = []

    def compute(batch: list[int]) -> list[int]:
        batches.append([lengths[number] for number in batch])
        return [-number for number in batch]

    assert in_batches(lengths, 14, compute, "x") == [0, -1, -2, -3, -4, -5]
    assert batches == [[10], [7, 7], [3], [2], [1]]
    assert in_batches([], 14, compute, "x") == []
    batches.clear()
    in_batches(lengths, 50, compute, "x")
    assert batches == [[10], [7, 7], [3, 2, 1]], "rows of other lengths meet up to a fifth of the budget"


@settings(max_examples=60)
@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 400))
def test_batches_hold_every_row_once_and_padding_stays_small(lengths: list[int], budget: int) -> None:
    batches: list[list[int]] = []

    def compute(batch: list[int]) -> list[int]:
        batches.append([lengths[number] for number in batch])
        return batch

    assert in_batches(lengths, budget, compute, "x") == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * batch[0] <= budget
        assert len(set(batch)) == 1 or len(batch) * batch[0] <= budget / 5


def test_a_smaller_budget_is_kept_after_memory_ran_out() -> None:
    batches: list[int] = []

    def compute(batch: Sequence[int]) -> list[int]:
        if len(batch) > 2:
            raise MemoryError
        batches.append(len(batch))
        return list(batch)

    with pytest.warns(MemoryWarning, match="x: 4 inputs of 5 pieces do not fit into memory; going on with 2 at a time"):
        assert in_batches([5] * 8, 20, compute, "x") == list(range(8))
    assert batches == [2, 2, 2, 2]


def test_one_row_too_many_for_the_memory_is_an_error() -> None:
    def compute(_: Sequence[int]) -> list[int]:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    with pytest.raises(ExecutionError, match="x: one input of 5 pieces does not fit into memory"):
        in_batches([5], 20, compute, "x")


def test_what_is_known_is_kept_by_use_within_its_memory() -> None:
    asked: list[list[str]] = []

    def compute(texts: list[str]) -> list[np.ndarray]:
        asked.append(texts)
        return [np.full(len(text), ord(text[0]), dtype=np.uint8) for text in texts]

    pinned: Pinned[np.ndarray] = Pinned(6)
    found = pinned.take(["aa", "bb", "aa"], compute)
    assert {text: values.tolist() for text, values in found.items()} == {"aa": [97, 97], "bb": [98, 98]}
    pinned.take(["cc"], compute)
    pinned.take(["aa"], compute)
    pinned.take(["dd"], compute)  # "bb" was not used for longest
    pinned.take(["aa", "cc", "dd"], compute)
    assert asked == [["aa", "bb"], ["cc"], ["dd"]]
    assert set(pinned.take(["eeeeeeee", "aa"], compute)) == {"eeeeeeee", "aa"}  # more than the memory, yet answered
    assert (pinned.size, pinned.computed) == (2, 5)


def test_cut_texts_are_counted_and_told_once() -> None:
    cuts = Cuts("x", 512)
    cuts.add(0, 10)
    with pytest.warns(TruncatedTextWarning, match="x: 2 of 10 inputs are longer than the 512 pieces"):
        cuts.add(2, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cuts.add(3, 10)
    assert cuts.count == 5


@pytest.mark.parametrize("spec", ["bertscore", "bartscore", "lmscore", "sbert", "transquest", "chrf"])
@pytest.mark.parametrize("file", ["configuration", "tokenizer"])
def test_code_that_a_model_brings_is_not_run_when_stdin_says_yes(
    spec: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", "utf-8")
    own = {"auto_map": {"AutoConfig": "mine.Config", "AutoTokenizer": ["mine.Tokenizer", None]}}
    config = {"model_type": "mine", **own} if file == "configuration" else {"model_type": "bert"}
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MyTokenizer", **own}), "utf-8")
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    write_tensors(tmp_path / "model.safetensors", {"a": np.zeros((2, 2), dtype="<f4")})
    monkeypatch.setattr("builtins.input", lambda _="": "y")
    model = f"model={str(tmp_path)!r}"
    metric, masker = ("chrf", f"infill_model({model}, kind='masked')") if spec == "chrf" else (f"{spec}({model})", None)
    with pytest.raises(WhyscoreError):
        explain([Segment("a cat", "eine Katze", ("a dog",))], metric, "erasure", masker=masker)
    assert not (tmp_path / "ran").exists()
