"""The identities of boards: each board has a number in its store, because all emulated chips have the same
serial number."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from ..device.board import Board
from ..device.errors import DeviceError, LinkError
from ..device.store import identify
from ..errors import DataError


class SameIdentity(DataError):
    """Two boards have one identity."""

    def __init__(self, one: str, other: str, identity: int) -> None:
        super().__init__(
            f"{one} and {other} have the same identity, {identity:08x}, as where a flash was copied: erase the flash "
            "of one of them"
        )


def identities(boards: Sequence[Board], names: Sequence[str]) -> list[int]:
    """The identity of each board; a board without an identity gets one. 0 for a board that cannot save it now, or no
    longer answers. Raises SameIdentity."""
    found: list[int] = []
    for board, name in zip(boards, names, strict=True):
        own = _identified(board, 0)
        if own and own in found:
            raise SameIdentity(names[found.index(own)], name, own)
        found.append(own)
    for k, board in enumerate(boards):
        if not found[k]:
            new = next(x for x in iter(lambda: secrets.randbits(32), None) if x and x not in found)
            found[k] = _identified(board, new)
    return found


def _identified(board: Board, number: int) -> int:
    """The board's identity, which becomes `number` if the board has none. 0 for a board without flash, for a board
    whose weights are half written, and for a board that does not answer: a round repairs the weights, and tries
    again."""
    try:
        return identify(board, number)
    except (DeviceError, LinkError):
        return 0
