"""The states of twins between rounds, such as the optimizer's state, in a file for the last round: a run that was
stopped continues with them, as boards continue with their flash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import DataError
from ..owned_files import write_file
from ..reading.npz import npz_of, read_npz
from .board_group import BoardResult, Failure, Members
from .folder import numbered, remove
from .round_request import RoundRequest
from .twins import Twins
from .virtual import VirtualTime

_BOARDS, _STATES = "boards", "states"


def name_of(number: int) -> str:
    """The name of the file after a round."""
    return f"twins-{number:05}.npz"


def twins_of(members: Sequence[Members]) -> Twins | None:
    """The twins of a run, if it has any."""
    return next((_twins_of(m) for m in members if isinstance(m, Twins | VirtualTime)), None)


def _twins_of(group: Twins | VirtualTime) -> Twins:
    return group.twins if isinstance(group, VirtualTime) else group


class StoredTwins:
    """Twins of a gateway that may be another process in each round: their states are in `folder`, and the server keeps
    the weights. The file of the round before stays, as a server may send a round again."""

    def __init__(self, group: Twins | VirtualTime, folder: Path) -> None:
        self.first, self._group, self._folder = group.first, group, folder
        self._are_loaded = False

    def __len__(self) -> int:
        return len(self._group)

    def round(self, order: RoundRequest, boards: Sequence[int]) -> Iterator[BoardResult | Failure]:
        """See Members."""
        twins, number = _twins_of(self._group), order.number
        if not self._are_loaded:
            restore(self._folder, twins, number, order.settings.local_buffers)
            self._are_loaded = True
        before = _last_before(self._folder, number)
        yield from self._group.round(order, boards)
        save(self._folder, twins, number)
        remove(self._folder, name_of, but=(before, number))


def stored(members: Sequence[Members], folder: Path) -> list[Members]:
    """The members of a gateway; the states of its twins are in `folder`."""
    return [StoredTwins(m, folder) if isinstance(m, Twins | VirtualTime) else m for m in members]


def restore(folder: Path, twins: Twins, number: int, local_buffers: bool) -> None:
    """Give twins their states before round `number`; print a line if there is no file of them. Raises DataError."""
    if number == 1 or _load(folder, twins, _last_before(folder, number)) or not twins.keeps(local_buffers):
        return
    print(
        f"{folder} has no states of twins before round {number}: twins begin with the initial states, such as the "
        "optimizer's",
        flush=True,
    )


def _last_before(folder: Path, number: int) -> int:
    """The last round before `number` that has a file, 0 without one."""
    return max((k for k in numbered(folder, name_of) if k < number), default=0)


def save(folder: Path, twins: Twins, number: int) -> None:
    """Write the states after a round; no file where twins keep nothing."""
    kept = twins.kept()
    if kept:
        states = np.stack([np.frombuffer(state, np.uint8) for state in kept.values()])
        content = npz_of({_BOARDS: np.array(list(kept), np.int64), _STATES: states})
        write_file(folder / name_of(number), content, force=True)


def _load(folder: Path, twins: Twins, number: int) -> bool:
    """Give twins their states after a round; returns whether there is a file. Raises DataError for a damaged file."""
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
        or states.shape != (len(boards), twins.local_state_bytes)
    ):
        raise DataError(
            f"{path}: has no states of twins of this model: remove it, or begin anew with --fresh"
        )
    twins.keep({int(k): state.tobytes() for k, state in zip(boards, states, strict=True)})
    return True
