"""The arrays that a strategy of Flower keeps between rounds, such as the moments of FedAdam, in a file: a run that was
stopped continues with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

_STAMP = "strategy"  # the name of the strategy and the round
_BY_NAME, _BY_NUMBER = ":", "#"  # between an attribute and an array in it


def save_state(path: Path, strategy: Any, number: int) -> None:
    """The state after a round."""
    arrays: dict[str, Any] = {_STAMP: np.array(_stamp(strategy, number))}
    for name, value in vars(strategy).items():
        if isinstance(value, dict):
            found = {f"{name}{_BY_NAME}{key}": array for key, array in value.items()}
        elif isinstance(value, list):
            found = {f"{name}{_BY_NUMBER}{k}": array for k, array in enumerate(value)}
        else:
            continue
        arrays.update({key: array for key, array in found.items() if isinstance(array, np.ndarray)})
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


def load_state(path: Path, strategy: Any, number: int) -> None:
    """Continue with the state after this round, if the file has it of the same strategy."""
    if not path.exists():
        return
    with np.load(path) as file:
        if file[_STAMP].tolist() != _stamp(strategy, number):
            return
        for key in file.files:
            if _BY_NAME in key:
                name, _, item = key.partition(_BY_NAME)
                setattr(strategy, name, {**(getattr(strategy, name) or {}), item: file[key]})
            elif _BY_NUMBER in key:
                name = key.partition(_BY_NUMBER)[0]
                setattr(strategy, name, [*(getattr(strategy, name) or []), file[key]])


def _stamp(strategy: Any, number: int) -> list[str]:
    return [type(strategy).__name__, str(number)]
