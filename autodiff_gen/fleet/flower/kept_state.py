"""The state of a strategy of Flower, such as the moments of FedAdam, in a file for each round: a run that was stopped
continues with it.

The file of a round is written before the round's weights, and the file of the round before stays: after a stop between
the two writes, the round is repeated with the state before it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord
from flwr.serverapp.strategy import Strategy

from ...errors import DataError, quoted
from ...owned_files import write_file
from ...reading.npz import NUMBERS, WORDS, npz_of, read_npz

_STAMP = "strategy"  # the name of the strategy, the round, and a checksum of its weights
_KEY = re.compile(
    r"([\w.]+)([:#@=])(.*)", re.DOTALL
)  # an attribute, the kind of its value, and an array's name in it


class KeptState:
    """The state of one strategy, in `folder`. Numbers that rounds change belong to it; other numbers are options."""

    def __init__(self, folder: Path, strategy: Any) -> None:
        self._folder, self._strategy, self._name = folder, strategy, type(strategy).__name__
        self._options = {key: value for key, value in _state(strategy) if not isinstance(value, np.ndarray)}

    def file(self, number: int) -> Path:
        """The state after a round."""
        return self._folder / f"strategy-{number:05}.npz"

    def save(self, number: int, weights: Mapping[str, Any]) -> None:
        """Write the state after a round that made these weights. Raises ToolError."""
        stamp = np.array(_stamp(self._strategy, number, weights))
        write_file(self.file(number), npz_of({_STAMP: stamp, **self._kept()}), force=True)
        for file in self._folder.glob("strategy-*.npz"):
            if file not in (self.file(number - 1), self.file(number)):
                file.unlink(missing_ok=True)

    def load(self, number: int, weights: Mapping[str, Any]) -> bool:
        """Give the strategy its state after a round; returns whether the folder has the state of this strategy and
        these weights. Raises DataError for a damaged file."""
        path = self.file(number)
        if not path.exists():
            return False
        try:
            arrays = read_npz(path, DataError, NUMBERS + WORDS)
        except DataError as error:
            raise DataError(f"{error}; without {path.name} the strategy begins anew") from None
        stamp = arrays.pop(_STAMP, None)
        if stamp is None or stamp.tolist() != _stamp(self._strategy, number, weights):
            return False
        for key, array in arrays.items():
            if not _set(self._strategy, key, array):
                raise DataError(
                    f"{path}: has {quoted(key)}, which {self._name} does not keep; without {path.name} the strategy "
                    "begins anew"
                )
        return True

    def is_empty(self) -> bool:
        """Whether the strategy has no state: a run continues without a file."""
        return not self._kept()

    def _kept(self) -> dict[str, Any]:
        own = _state(self._strategy)
        return {
            k: value for k, value in own if isinstance(value, np.ndarray) or self._options.get(k) != value
        }


def _stamp(strategy: Any, number: int, weights: Mapping[str, Any]) -> list[str]:
    checksum = 0
    for name in sorted(weights):
        checksum = zlib.crc32(np.ascontiguousarray(weights[name]).tobytes(), checksum)
    return [type(strategy).__name__, str(number), f"{checksum:08x}"]


def _state(strategy: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays and numbers of the strategy, and of the strategy in it, by keys."""
    for name, value in vars(strategy).items():
        place = path + name
        if isinstance(value, Strategy):
            yield from _state(value, f"{place}.")
        elif _is_number(value):
            yield f"{place}=", value
        elif isinstance(value, ArrayRecord):
            yield from ((f"{place}@{key}", array.numpy()) for key, array in value.items())
        elif isinstance(value, dict | list):
            mark, items = (":", value.items()) if isinstance(value, dict) else ("#", enumerate(value))
            yield from ((f"{place}{mark}{key}", x) for key, x in items if isinstance(x, np.ndarray))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _set(strategy: Any, key: str, array: Any) -> bool:
    """Give the strategy a value that `_state` found; returns False for a key without such a value."""
    found = _KEY.fullmatch(key)
    if found is None:
        return False
    (*owners, name), kind, item = found[1].split("."), found[2], found[3]
    for owner in owners:
        strategy = vars(strategy).get(owner) if isinstance(strategy, Strategy) else None
    if not isinstance(strategy, Strategy) or name not in vars(strategy):
        return False
    before = vars(strategy)[name]
    if kind == "=" and _is_number(before) and array.shape == ():
        value: Any = array.item()
    elif kind == ":" and (before is None or isinstance(before, dict)):
        value = {**(before or {}), item: array}
    elif kind == "#" and (before is None or isinstance(before, list)):
        value = [*(before or []), array]
    elif kind == "@" and (before is None or isinstance(before, ArrayRecord)):
        value = ArrayRecord({**(before or {}), item: Array(array)})
    else:
        return False
    setattr(strategy, name, value)
    return True
