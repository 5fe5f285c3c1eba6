"""Headers of safetensors files that were made to do harm: refused by every reader, with the file and the reason."""

import json
import re
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from whyscore.errors import DataError
from whyscore.metrics.estimators import joint
from whyscore.models import checkpoints, language_models
from whyscore.models.encoders.transformer import Transformer
from whyscore.models.maps import LanguageMap, read_map, write_map
from whyscore.models.tensors import check_tensors, read_tensors, write_tensors

NUMBERS = np.eye(2).tobytes()
TWICE = '{"dtype": "F64", "shape": [2, 2], "data_offsets": [0, 32]}'


def packed(header: object, numbers: bytes = NUMBERS, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + numbers


def entry(dtype: object = "F64", shape: object = (2, 2), offsets: object = (0, 32)) -> dict[str, object]:
    return {"projection": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


SMALLER = {"direction": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}
UNREADABLE = "'projection' has no type, shape and place that can be read"

CRAFTED = {
    "empty": (b"", "it has 0 bytes"),
    "cut in the length": (b"\1\0\0", "it has 3 bytes"),
    "length beyond all files": (packed(b"{}", b"", 2**64 - 1), "have 18446744073709551615 bytes, the file has 10"),
    "length beyond this file": (packed(entry(), length=10**9), "said to have 1000000000 bytes"),
    "not JSON": (packed(b"{nope}  "), "its header is not JSON"),
    "not UTF-8": (packed(b"\xff\xfe{}"), "its header is not JSON"),
    "nested too deep": (packed(b'{"a":' * 100_000), "its header is not JSON"),
    "a number without end": (packed(b'{"projection": ' + b"9" * 5000 + b"}"), "its header is not JSON"),
    "a list": (packed([1]), "expected a JSON object as its header, found list"),
    "a name twice": (packed(f'{{"projection": {TWICE}, "projection": {TWICE}}}'.encode()), "'projection' stands in"),
    "a field twice": (packed(b'{"projection": {"dtype": "F32", ' + TWICE[1:].encode() + b"}"), "'dtype' stands in one"),
    "overlapping": (packed(entry() | SMALLER), "'projection' begins at byte 0 of the numbers, expected 16"),
    "a hole": (packed(entry(offsets=(8, 40)), NUMBERS + bytes(8)), "begins at byte 8 of the numbers, expected 0"),
    "beyond the end": (packed(entry(shape=(20, 20), offsets=(0, 3200))), "its arrays take 3200 bytes, the file has 32"),
    "far beyond the end": (packed(entry(offsets=(2**60, 2**60 + 32))), "begins at byte 1152921504606846976"),
    "bytes that belong to no array": (packed(entry(), NUMBERS + b"code"), "take 32 bytes, the file has 36"),
    "negative offsets": (packed(entry(offsets=(-32, 0))), UNREADABLE),
    "end before start": (packed(entry(offsets=(32, 0))), "do not fit its -32 bytes"),
    "three offsets": (packed(entry(offsets=(0, 32, 1))), UNREADABLE),
    "truth values as offsets": (packed(entry("U8", [1], [False, True]), b"1"), UNREADABLE),
    "negative sizes": (packed(entry(shape=(-2, -2))), UNREADABLE),
    "a size to be guessed": (packed(entry(shape=(-1, 2))), UNREADABLE),
    "sizes that are no whole numbers": (packed(entry(shape=(2.0, 2.0))), UNREADABLE),
    "a product beyond 64 bits": (packed(entry(shape=(2**62, 2**62))), "do not fit its 32 bytes"),
    "a size beyond 64 bits": (packed(entry(shape=(2**64, 0))), UNREADABLE),
    "a shape of another size": (packed(entry(shape=(3, 3))), "has the shape [3, 3] and the type F64, which do not fit"),
    "a thousand dimensions": (packed(entry(shape=[10**18] * 1000)), "has 1000 dimensions, expected at most 32"),
    "an unknown type": (packed(entry("O")), "'projection' has the type 'O', expected one of F64, F32"),
    "a type of another size": (packed(entry("F32")), "the type F32, which do not fit its 32 bytes"),
    "no type": (packed({"projection": {"shape": [2, 2], "data_offsets": [0, 32]}}), UNREADABLE),
    "nothing as an array": (packed({"projection": None}), UNREADABLE),
    "facts that are a list": (packed({"__metadata__": ["a"]} | entry()), "expected texts by name under __metadata__"),
    "facts that are numbers": (packed({"__metadata__": {"a": 1}} | entry()), "expected texts by name under"),
}  # fmt: skip

READERS: dict[str, Callable[[Path], object]] = {
    "arrays": read_tensors,
    "header": lambda path: check_tensors([path]),
    "map": read_map,
    "estimator": lambda path: joint.load_folder(path.parent),
    "checkpoint": lambda path: checkpoints.read(path, "comet"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", CRAFTED)
def test_a_crafted_header_is_refused_with_file_and_reason(kind: str, reader: str, tmp_path: Path) -> None:
    content, reason = CRAFTED[kind]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=re.escape(reason)) as refused:
            READERS[reader](path)
        assert str(refused.value).startswith(f"{path}: is damaged, cannot be read as safetensors: ")
        assert "\n" not in str(refused.value)
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()


Tiny = Callable[[str], Path]

NETWORKS: dict[str, tuple[str, Callable[[str], object]]] = {
    "encoder": ("bert", lambda folder: Transformer(folder, 2).encode(["one"])),
    "encoder to be trained": ("bert", joint.load_encoder),
    "infill model": ("bert", lambda folder: language_models.load(folder, "masked", "cpu")),
    "language model": (
        "gpt2",
        lambda folder: language_models._folder_parts(*language_models.text_model_files(folder)),
    ),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_networks_of_transformers_are_not_loaded_from_a_crafted_file(network: str, tiny: Tiny, tmp_path: Path) -> None:
    kind, load = NETWORKS[network]
    folder = Path(shutil.copytree(tiny(kind), tmp_path / "model"))
    for name in ("length beyond all files", "a name twice", "overlapping", "an unknown type"):
        content, reason = CRAFTED[name]
        (folder / "model.safetensors").write_bytes(content)
        with pytest.raises(DataError, match=re.escape(reason)) as refused:
            load(str(folder))
        assert str(refused.value).startswith(f"{folder / 'model.safetensors'}: is damaged")


def test_a_map_of_whole_numbers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.safetensors"
    path.write_bytes(packed(entry("I64")))
    with pytest.raises(DataError, match="expected floats as projection, found int64"):
        read_map(path)


def test_a_type_that_numpy_does_not_have_is_refused_by_the_reader_of_arrays(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(packed(entry("BF16", (4, 4))))
    check_tensors([path])
    with pytest.raises(DataError, match=re.escape("'projection' has the type BF16, expected one of F64, F32")):
        read_tensors(path)


def test_what_is_written_is_read_by_the_package_and_the_other_way_round(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    ours, theirs = tmp_path / "ours.safetensors", tmp_path / "theirs.safetensors"
    arrays = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.zeros((0, 3)), "c": np.array([True])}
    write_tensors(ours, arrays, {"format": "1"})
    package.save_file(arrays, theirs, metadata={"format": "1"})
    for found in (read_tensors(theirs)[0], package.load_file(ours)):
        assert found.keys() == arrays.keys()
        assert all(
            np.array_equal(found[name], arrays[name]) and found[name].shape == arrays[name].shape for name in arrays
        )
    assert read_tensors(theirs)[1] == {"format": "1"}
    learned = LanguageMap(np.eye(3), np.ones(3), {"layer": "2"})
    write_map(learned, theirs)
    assert np.array_equal(package.load_file(theirs)["projection"], np.eye(3))
