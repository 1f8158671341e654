"""Files of others: a file that is not regular, is damaged or asks for too much gives one line that names it."""

from __future__ import annotations

import io
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from autodiff_gen.errors import DataError, ModelError, ToolError
from autodiff_gen.reading.archive import Archive
from autodiff_gen.reading.json_text import parse
from autodiff_gen.reading.limits import DEPTH, MEMORY, OPTION
from autodiff_gen.reading.npz import load_arrays, npz_of, read_npy, read_npz
from autodiff_gen.reading.regular import read_bytes, read_text


def test_limits_grow_with_the_file_and_by_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    DEPTH.check(64, "net.onnx", ModelError)
    with pytest.raises(
        ModelError, match=re.escape("net.onnx asks for 65 levels of nested parts, the limit is 64;")
    ) as raised:
        DEPTH.check(65, "net.onnx", ModelError)
    assert f"set the environment variable {OPTION}=2" in str(raised.value)
    monkeypatch.setenv(OPTION, "2")
    DEPTH.check(65, "net.onnx", ModelError)
    assert MEMORY.most(10) == 2 * ((256 << 20) + 40)
    monkeypatch.setenv(OPTION, "much")
    with pytest.raises(ToolError, match=f"{OPTION}=much must be a number from 1 to 1000000"):
        DEPTH.check(1, "net.onnx", ModelError)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfa = 1")
    for name, what in (("pipe", "a pipe"), ("zero", "a device"), ("", "a folder")):
        with pytest.raises(ModelError, match=re.escape(f"{tmp_path / name} is {what}; give a regular file")):
            read_bytes(tmp_path / name, ModelError)
    with pytest.raises(ModelError, match="missing: cannot be read: No such file"):
        read_bytes(tmp_path / "missing", ModelError)
    with pytest.raises(ModelError, match="is no name of a file"):
        read_bytes(tmp_path / "a\0b", ModelError)
    assert read_text(tmp_path / "text", ModelError) == "a = 1"
    (tmp_path / "text").write_bytes(b"a\xff")
    with pytest.raises(ModelError, match="byte 2 is not UTF-8"):
        read_text(tmp_path / "text", ModelError)


def _zip(*entries: tuple[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return made.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_are_checked_before_they_are_unpacked() -> None:
    bomb = _zip(*((f"{k}.npy", bytes(1 << 24)) for k in range(17)))
    with pytest.raises(ModelError, match=r"net\.pt2 asks for 285,212,672 bytes of memory, the limit is"):
        Archive(bomb, "net.pt2", ModelError)
    with pytest.raises(ModelError, match="has two entries 'a'"):
        Archive(_zip(("a", b"1"), ("a", b"2")), "net.pt2", ModelError)
    with pytest.raises(ModelError, match=r"net\.pt2 is no complete archive: truncated"):
        Archive(_zip(("a", b"1"))[:-4], "net.pt2", ModelError)
    good = _zip(("a", b"1" * 1000))
    assert Archive(good, "net.pt2", ModelError).read("a") == b"1" * 1000
    flipped = bytearray(good)
    flipped[33] ^= 16  # of the packed data
    with pytest.raises(ModelError, match="the entry 'a' is damaged"):
        Archive(bytes(flipped), "net.pt2", ModelError).read("a")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"[" * 100_000, "nests too deeply"),
        (b'{"a": 1, "b": 2, "a": 3}', "has the key 'a' twice"),
        (b"{", "its JSON is damaged"),
        (b"\xff\xfe\xfd", "its JSON is damaged"),
        (b"1" * 10_000, "its JSON is damaged"),
    ],
)
def test_json_that_is_none(text: bytes, error: str) -> None:
    with pytest.raises(ModelError, match=error):
        parse(text, "net.pt2", ModelError)


def _npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    ("header", "data", "error"),
    [
        (
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
            bytes(7),
            "has 7 bytes, its shape needs 8",
        ),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", bytes(8), r"has the shape \(-2,\)"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1 << 40,), }", b"", "is damaged, or no array"),
        (
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
            b"",
            "asks for more than",
        ),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", b"", "elements of dtype object"),
        ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", bytes(8), "elements of dtype"),
        ("__import__('os').system('true')", b"", "is damaged, or no array"),
    ],
)
def test_arrays_that_are_none(header: str, data: bytes, error: str, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(_npy(header, data))
    with pytest.raises(ModelError, match=error):
        read_npy(tmp_path / "x.npy", ModelError)
    (tmp_path / "x.npz").write_bytes(_zip(("w.npy", _npy(header, data))))
    with pytest.raises(ModelError, match=rf"x\.npz: the array 'w' .*{error}"):
        read_npz(tmp_path / "x.npz", ModelError)


def test_arrays_are_those_that_numpy_wrote(tmp_path: Path) -> None:
    arrays = {
        "a": np.arange(6, dtype="f4").reshape(2, 3),
        "b": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "c": np.array(True),
        "d": np.zeros((0, 3), "u1"),
    }
    np.savez_compressed(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
    found = read_npz(tmp_path / "x.npz", ModelError)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_arrays_of_any_name_are_written(tmp_path: Path) -> None:
    """np.savez takes some names for its own arguments."""
    arrays = {name: np.full((2, 1), k) for k, name in enumerate(("file", "allow_pickle", "a/b", "self"))}
    (tmp_path / "x.npz").write_bytes(npz_of(arrays))
    found = load_arrays(tmp_path / "x.npz")
    assert list(found) == list(arrays) and all(np.array_equal(found[n], arrays[n]) for n in arrays)
    with np.load(tmp_path / "x.npz") as file:
        assert set(file) == set(arrays)
    with pytest.raises(DataError, match=r"y\.npz: cannot be read: No such file"):
        load_arrays(str(tmp_path / "y.npz"))
