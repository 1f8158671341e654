"""Read tensors by name from files of torch.save (.pt, .pth), without PyTorch. This module interprets the pickle: it
makes only tensors and calls nothing in the file."""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import AutodiffError, quoted, shortened
from .archive import Archive
from .limits import MEMORY

_TYPES = {
    "BFloat16": "u2",  # the upper half of a float
    "Bool": "?",
    "Byte": "u1",
    "Char": "i1",
    "ComplexFloat": "c8",
    "Double": "f8",
    "Float": "f4",
    "Half": "f2",
    "Int": "i4",
    "Long": "i8",
    "Short": "i2",
}
_MOST_AXES = 32


class _Global(NamedTuple):
    name: str  # module.name


class _Storage(NamedTuple):
    type: str
    key: str


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool


class SavedTensor(NamedTuple):
    """A tensor of a file; bfloat16 is converted to float32. type: the type of its storage, such as "Float"; place: the
    storage, and offset, shape and strides in it, equal for tensors that show the same elements."""

    array: NDArray[Any]
    type: str
    requires_grad: bool
    place: tuple[str, int, tuple[int, ...], tuple[int, ...]]


class _Mark:
    pass


class _Rejected(Exception):
    """A pickle with other objects than tensors by name; the message continues "it"."""


STATE_DICT = "save it by torch.save(model.state_dict(), ...)"


def read_torch_state(path: Path, error_type: type[AutodiffError]) -> dict[str, NDArray[Any]]:
    """The arrays of a state_dict by name. Raises an error of this kind for a file that is no state_dict, is damaged, or
    has complex tensors."""
    with Archive(path, str(path), error_type, "file of torch.save (PyTorch 1.6 or later)") as archive:
        arrays = {}
        for name, tensor in saved_tensors(archive, error_type, STATE_DICT).items():
            if tensor.array.dtype.kind == "c":
                raise error_type(
                    f"{path}: has tensors of torch.{tensor.type}Storage, which are no real numbers: {STATE_DICT}"
                )
            arrays[name] = tensor.array
        return arrays


def saved_tensors(archive: Archive, error_type: type[AutodiffError], instead: str) -> dict[str, SavedTensor]:
    """The tensors of an archive of torch.save by name. instead: the end of messages, which says how to save the file.
    Raises an error of this kind for an archive that is damaged, or has other objects."""
    where = archive.name
    names = list(archive.names())
    pickles = [name for name in names if name.endswith("data.pkl")]
    if len(pickles) != 1:
        raise error_type(f"{where}: is no state_dict of PyTorch: {instead}")
    folder = pickles[0].removesuffix("data.pkl")
    order = archive.read(f"{folder}byteorder") if f"{folder}byteorder" in names else b"little"
    try:
        found = _Pickle(archive.read_text(pickles[0])).value
    except _Rejected as error:
        raise error_type(f"{where}: is no file of tensors by name, it {error}: {instead}") from None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, EOFError, UnicodeError):
        raise error_type(f"{where}: its list of tensors is damaged; copy or save the file again") from None
    if not isinstance(found, dict) or not all(isinstance(t, _Tensor) for t in found.values()):
        raise error_type(f"{where}: is no state_dict of PyTorch: {instead}")
    sizes = [
        prod(e or 1 for e in t.shape) * np.dtype(_TYPES[t.storage.type]).itemsize for t in found.values()
    ]
    MEMORY.check(sum(sizes), where, error_type, archive.size)
    data: dict[str, bytes] = {}
    tensors = {}
    for name, tensor in found.items():
        entry = f"{folder}data/{tensor.storage.key}"
        if entry not in data:
            if entry not in names:
                raise error_type(
                    f"{where}: the tensor {quoted(name)} has no data; copy or save the file again"
                )
            data[entry] = archive.read(entry)
        array = _array(tensor, data[entry], order == b"big")
        if array is None:
            raise error_type(
                f"{where}: the tensor {quoted(name)} is larger than its data; copy or save the file again"
            )
        place = (entry, tensor.offset, tensor.shape, tensor.strides)
        tensors[name] = SavedTensor(array, tensor.storage.type, tensor.requires_grad, place)
    return tensors


def _array(tensor: _Tensor, data: bytes, is_big: bool) -> NDArray[Any] | None:
    """A copy of the tensor; None if it has elements outside its data."""
    dtype = np.dtype(_TYPES[tensor.storage.type]).newbyteorder(">" if is_big else "<")
    if prod(tensor.shape) == 0:
        return np.zeros(tensor.shape, dtype.newbyteorder("="))
    steps = zip(tensor.shape, tensor.strides, strict=True)
    last = tensor.offset + sum((extent - 1) * stride for extent, stride in steps)
    if (last + 1) * dtype.itemsize > len(data):
        return None
    flat = np.frombuffer(data, dtype, len(data) // dtype.itemsize)
    if tensor.storage.type == "Bool":
        flat = flat.view(np.uint8) != 0
    strides = tuple(stride * dtype.itemsize for stride in tensor.strides)
    view = np.lib.stride_tricks.as_strided(flat[tensor.offset :], tensor.shape, strides)
    array = view.astype(dtype.newbyteorder("="))
    if tensor.storage.type == "BFloat16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array


class _Pickle:
    """Interprets a pickle of dicts and tensors. Raises _Rejected for other objects."""

    def __init__(self, data: bytes) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self.value: Any = None
        for code, argument, _ in pickletools.genops(io.BytesIO(data)):
            if code.name in _CONSTANTS:
                self._stack.append(_CONSTANTS[code.name]())
            elif code.name in _LITERALS:
                self._stack.append(argument)
            elif code.name in _CODES:
                _CODES[code.name](self, argument)
            else:
                raise _Rejected("has more than tensors")
        (self.value,) = self._stack

    def _since_mark(self) -> list[Any]:
        items: list[Any] = []
        while not isinstance(item := self._stack.pop(), _Mark):
            items.append(item)
        return items[::-1]

    def _global(self, argument: str) -> None:
        self._stack.append(_Global(argument.replace(" ", ".")))

    def _put(self, argument: int) -> None:
        self._memo[argument] = self._stack[-1]

    def _get(self, argument: int) -> None:
        self._stack.append(self._memo[argument])

    def _tuple(self, count: int | None) -> None:
        items = self._since_mark() if count is None else [self._stack.pop() for _ in range(count)][::-1]
        self._stack.append(tuple(items))

    def _items(self, items: list[Any]) -> None:
        into = self._stack[-1]
        for name, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(into, dict) or not isinstance(name, str):
                raise _Rejected("has more than tensors by name")
            if name in into:
                raise _Rejected(f"has two tensors {quoted(name)}")
            into[name] = value

    def _one_item(self, _: Any) -> None:
        value, name = self._stack.pop(), self._stack.pop()
        self._items([name, value])

    def _append(self, items: list[Any]) -> None:
        self._stack[-1].extend(items)

    def _build(self, _: Any) -> None:
        self._stack.pop()  # attributes, such as a state_dict's versions of modules

    def _storage(self, _: Any) -> None:
        what, kind, key, _, _ = self._stack.pop()
        name = kind.name.removeprefix("torch.").removesuffix("Storage")
        if what != "storage" or name not in _TYPES:
            raise _Rejected(f"has tensors of {shortened(kind.name)}, which are no real numbers")
        if not isinstance(key, str):
            raise ValueError
        self._stack.append(_Storage(name, key))

    def _reduce(self, _: Any) -> None:
        arguments, called = self._stack.pop(), self._stack.pop()
        if called.name == "collections.OrderedDict" and arguments == ():
            self._stack.append({})
        elif called.name == "torch._utils._rebuild_parameter":
            tensor, requires_grad = arguments[:2]
            self._stack.append(tensor._replace(requires_grad=bool(requires_grad)))
        elif called.name == "torch._utils._rebuild_tensor_v2":
            self._stack.append(_tensor(*arguments[:5]))
        else:
            raise _Rejected(f"has objects of {quoted(called.name)}")


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any) -> _Tensor:
    numbers = (offset, *shape, *strides)
    if any(type(n) is not int or not 0 <= n < 1 << 62 for n in numbers) or not isinstance(storage, _Storage):
        raise ValueError
    if len(shape) != len(strides) or len(shape) > _MOST_AXES:
        raise ValueError
    return _Tensor(storage, offset, tuple(shape), tuple(strides), bool(requires_grad))


_CONSTANTS: dict[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "MARK": _Mark,
    "NEWFALSE": lambda: False,
    "NEWTRUE": lambda: True,
    "NONE": lambda: None,
}
_LITERALS = {"BINFLOAT", "BININT", "BININT1", "BININT2", "BINUNICODE", "LONG1"}
_CODES: dict[str, Callable[[_Pickle, Any], None]] = {
    "APPEND": lambda p, _: p._append([p._stack.pop()]),
    "APPENDS": lambda p, _: p._append(p._since_mark()),
    "BINGET": _Pickle._get,
    "BINPERSID": _Pickle._storage,
    "BINPUT": _Pickle._put,
    "BUILD": _Pickle._build,
    "GLOBAL": _Pickle._global,
    "LONG_BINGET": _Pickle._get,
    "LONG_BINPUT": _Pickle._put,
    "PROTO": lambda p, _: None,
    "REDUCE": _Pickle._reduce,
    "SETITEM": _Pickle._one_item,
    "SETITEMS": lambda p, _: p._items(p._since_mark()),
    "STOP": lambda p, _: None,
    "TUPLE": lambda p, _: p._tuple(None),
    "TUPLE1": lambda p, _: p._tuple(1),
    "TUPLE2": lambda p, _: p._tuple(2),
    "TUPLE3": lambda p, _: p._tuple(3),
}
