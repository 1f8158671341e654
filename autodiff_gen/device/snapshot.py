"""The whole state of a board, in its RAM and in its flash, so that checks that train it can restore it."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from .board import Board
from .errors import DeviceError


class BoardState:
    """Parameters and the optimizer's state by name, and the step count, read from a board."""

    def __init__(self, board: Board) -> None:
        self.arrays: dict[str, NDArray[Any]] = board.state_dict()
        self.steps = board.steps

    def send(self, board: Board) -> None:
        """Raises LinkError, DeviceError."""
        board.load_state_dict(self.arrays, steps=self.steps)


class Snapshot:
    """The board's state and, after `load`, the state in its newest checkpoint: the two differ if the board trained
    after the checkpoint, or if `push` sent weights without a checkpoint."""

    def __init__(self, board: Board) -> None:
        self.now = BoardState(board)
        self._saved: BoardState | None = None
        self._sequence = board.greeting.checkpoint

    def load(self, board: Board) -> None:
        """Read the checkpoint, which is then the board's state. Raises LinkError, DeviceError."""
        if not board.greeting.has_flash:
            return
        try:
            board.load()
        except DeviceError:  # there is none that it can load
            return
        self._sequence = board.greeting.checkpoint
        self._saved = BoardState(board)

    def restore(self, board: Board) -> None:
        """Send everything back. The flash is written only if another checkpoint was written in the meantime: with the
        checkpoint that it had, or with the state where it had none. Raises LinkError, DeviceError."""
        if board.greeting.checkpoint != self._sequence:
            (self._saved or self.now).send(board)
            board.save()
        self.now.send(board)
