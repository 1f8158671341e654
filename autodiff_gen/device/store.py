"""The data that a board keeps in its flash beside the checkpoints: its identity in a fleet, and how worn the flash
is."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from . import frames
from .board import Board

_SLOT_HEADER = 16  # bytes (docs/store.md)


@dataclass(frozen=True)
class Wear:
    """The flash of a board: `slots` of `slot_bytes` each, erased `erasures` times in all. A round programs `programmed`
    bytes."""

    slots: int
    slot_bytes: int
    erasures: int
    programmed: int

    @property
    def rounds(self) -> int:
        """After so many rounds a slot is full, and the next is erased."""
        return max(1, (self.slot_bytes - _SLOT_HEADER) // max(1, self.programmed))

    def __str__(self) -> str:
        often = "every round" if self.rounds == 1 else f"every {self.rounds:,} rounds"
        return (
            f"a round programs {self.programmed:,} bytes of a board's flash, and {often} erases one of {self.slots} "
            f"sectors of {self.slot_bytes:,} bytes"
        )


def wear(board: Board) -> Wear:
    """The flash of a board that is in a round. Raises DeviceError."""
    return Wear(*board.retry(lambda: board.link.request(frames.WEAR, b"", "<4I")))


def identity(board: Board) -> int:
    """The identity in the board's store, 0 where there is none."""
    return identify(board, 0)


def identify(board: Board, number: int) -> int:
    """Give the board an identity, once; returns it. Raises DeviceError for a board that has another one, or no
    flash."""
    request = struct.pack("<I", number)
    (found,) = board.retry(lambda: board.link.request(frames.IDENTITY, request, "<I"))
    if number:
        board.refresh()  # a board that saves its identity leaves its round
    return int(found)
