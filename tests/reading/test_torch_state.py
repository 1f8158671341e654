"""Files of torch.save: what PyTorch writes is read as PyTorch reads it, and nothing else is."""

from __future__ import annotations

import io
import pickle
import re
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from autodiff_gen.errors import DataError
from autodiff_gen.reading.torch_state import read_torch_state

pytestmark = pytest.mark.torch


def _types() -> dict[str, Any]:
    base = torch.arange(24.0).reshape(4, 6)
    whole = [base.to(t) for t in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)]
    floats = [base.half(), base.bfloat16(), base.double()]
    return {f"t{k}": t for k, t in enumerate([*whole, *floats, base > 3, torch.tensor(3), torch.zeros(0, 3)])}


def _views() -> dict[str, Any]:
    base = torch.arange(24.0).reshape(4, 6)
    return {"a": base.T, "b": base[1:3, ::2], "c": base[0].expand(3, 6), "d": torch.nn.Parameter(base)}


STATES: dict[str, Callable[[], dict[str, Any]]] = {
    "a module": lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8)).state_dict(),
    "types": _types,
    "views": _views,
    "nothing": dict,
}


@pytest.mark.parametrize("case", STATES)
def test_a_state_dict_is_read_as_pytorch_reads_it(case: str, tmp_path: Path) -> None:
    torch.save(STATES[case](), tmp_path / "w.pt")
    wanted = torch.load(tmp_path / "w.pt", weights_only=True)
    found = read_torch_state(tmp_path / "w.pt", DataError)
    assert list(found) == list(wanted)
    for name, tensor in wanted.items():
        array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).detach().numpy()
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)


class _Calls:
    def __reduce__(self) -> Any:
        return print, ("executed",)


def _saved(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def _with(change: Callable[[str, bytes], bytes]) -> bytes:
    """A file whose entries are changed."""
    made = io.BytesIO()
    whole = zipfile.ZipFile(io.BytesIO(_saved({"w": torch.zeros(4)})))
    with zipfile.ZipFile(made, "w") as file:
        for name in whole.namelist():
            file.writestr(name, change(name.rpartition("/")[2], whole.read(name)))
    return made.getvalue()


def _pickled(data: bytes) -> bytes:
    return _with(lambda name, content: data if name == "data.pkl" else content)


# the kind of file, and the message after its name
FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "is no complete file of torch.save"),
    "text": (lambda: b"weights", "is no complete file of torch.save"),
    "a pickle": (lambda: pickle.dumps({"w": 1}), "is no complete file of torch.save"),
    "before PyTorch 1.6": (
        lambda: _saved({"w": torch.zeros(2)}, _use_new_zipfile_serialization=False),
        "is no complete file of torch.save (PyTorch 1.6 or later)",
    ),
    "truncated": (lambda: _saved({"w": torch.zeros(2)})[:-40], "is no complete file of torch.save"),
    "a module": (
        lambda: _saved(torch.nn.Linear(2, 2)),
        "has more than tensors: save it by torch.save(model.st",
    ),
    "a checkpoint": (
        lambda: _saved({"w": torch.zeros(2), "epoch": 3}),
        "is no state_dict of PyTorch: save it by",
    ),
    "nested": (lambda: _saved({"net": {"w": torch.zeros(2)}}), "is no state_dict of PyTorch: save it by"),
    "a list": (lambda: _saved([torch.zeros(2)]), "is no state_dict of PyTorch: save it by"),
    "numbers as names": (lambda: _saved({3: torch.zeros(2)}), "has more than tensors by name"),
    "a call": (lambda: _saved({"w": _Calls()}), "has objects of '__builtin__.print'"),
    "a call in attributes": (
        lambda: _saved(_attributes(OrderedDict(w=torch.zeros(2)))),
        "has objects of '__builtin__.print'",
    ),
    "sparse": (
        lambda: _saved({"w": torch.eye(3).to_sparse()}),
        "has objects of 'torch.serialization._get_layout'",
    ),
    "complex": (lambda: _saved({"w": torch.zeros(2, dtype=torch.complex64)}), "which are no real numbers"),
    "stride 0": (
        lambda: _saved({"w": torch.zeros(1).expand(1 << 40)}),
        "asks for 4,398,046,511,104 bytes of memory, the limit is",
    ),
    "bytes of a bytearray": (
        lambda: _pickled(b"\x80\x02c__builtin__\nbytearray\n\x8a\x06\0\0\0\0\0\x01\x85R."),
        "has objects of '__builtin__.bytearray'",
    ),
    "a large index of the memo": (lambda: _pickled(b"\x80\x02}r\xff\xff\xff\x7f."), ""),
    "no pickle": (lambda: _pickled(b"PK"), "its list of tensors is damaged"),
    "an empty stack": (lambda: _pickled(b"\x80\x02R."), "its list of tensors is damaged"),
    "a truncated pickle": (lambda: _pickled(b"\x80\x02}X\xff\xff\xff\xff"), "its list of tensors is damaged"),
    "two of one name": (
        lambda: _pickled(b"\x80\x02}(X\x01\0\0\0wK\x01X\x01\0\0\0wK\x01u."),
        "has two tensors 'w'",
    ),
    "less data than the tensor": (
        lambda: _with(lambda name, content: content[:8] if name == "0" else content),
        "the tensor 'w' is larger than its data",
    ),
    "a negative stride": (
        lambda: _with(
            lambda name, c: c.replace(b"K\x01\x85", b"J\xff\xff\xff\xff\x85") if name == "data.pkl" else c
        ),
        "its list of tensors is damaged",
    ),
    "an offset outside the data": (
        lambda: _with(lambda name, c: c.replace(b"QK\0K\x04", b"QK\x02K\x04") if name == "data.pkl" else c),
        "the tensor 'w' is larger than its data",
    ),
}


def _attributes(state: OrderedDict[str, Any]) -> OrderedDict[str, Any]:
    state._metadata = _Calls()  # type: ignore[attr-defined]
    return state


@pytest.mark.parametrize("case", FILES)
def test_nothing_else_is_read(case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make, message = FILES[case]
    (tmp_path / "w.pt").write_bytes(make())
    if not message:
        assert read_torch_state(tmp_path / "w.pt", DataError) == {}
        return
    with pytest.raises(DataError, match=re.escape(message)) as raised:
        read_torch_state(tmp_path / "w.pt", DataError)
    assert str(raised.value).startswith(str(tmp_path / "w.pt")) and len(str(raised.value)) <= 400
    assert "executed" not in capfd.readouterr().out
