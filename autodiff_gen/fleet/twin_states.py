"""What twins keep between rounds, such as the optimizer's state, in a file beside the weights of the last round: a run
that was stopped continues with it, as boards do by their flash."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import DataError
from ..owned_files import write_file
from ..reading.npz import npz_of, read_npz
from .members import Members
from .twins import Twins
from .virtual import VirtualTime

_BOARDS, _STATES = "boards", "states"


def name_of(number: int) -> str:
    """The name of the file after a round."""
    return f"twins-{number:05}.npz"


def twins_of(members: Sequence[Members]) -> Twins | None:
    """The twins of a run, if it has any."""
    for group in members:
        if isinstance(group, VirtualTime):
            return group.twins
        if isinstance(group, Twins):
            return group
    return None


def save(folder: Path, twins: Twins, number: int) -> None:
    """The states after a round, before its weights are written; none where twins keep nothing."""
    kept = twins.kept()
    if kept:
        states = np.stack([np.frombuffer(state, np.uint8) for state in kept.values()])
        content = npz_of({_BOARDS: np.array(list(kept), np.int64), _STATES: states})
        write_file(folder / name_of(number), content, force=True)


def load(folder: Path, twins: Twins, number: int) -> bool:
    """Continue with the states after a round; whether there are some. Raises DataError for a damaged file."""
    path = folder / name_of(number)
    if not path.is_file():
        return False
    arrays = read_npz(path, DataError)
    boards, states = arrays.get(_BOARDS), arrays.get(_STATES)
    if (
        boards is None
        or states is None
        or boards.dtype != np.int64
        or states.dtype != np.uint8
        or boards.ndim != 1
        or states.shape != (len(boards), twins.kept_bytes)
    ):
        raise DataError(f"{path}: has no states of twins of this model; --fresh begins anew")
    twins.keep({int(k): state.tobytes() for k, state in zip(boards, states, strict=True)})
    return True
