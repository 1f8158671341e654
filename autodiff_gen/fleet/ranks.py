"""Ranks of synchronous training: twins on the host, and boards over the link (device/gradients.py)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..device.gradients import Array, Part, exchanged_slots
from ..host.trainer import Trainer


class Rank(Protocol):
    """One rank. `kind`: ranks of one kind compute the same bits."""

    name: str
    kind: str
    steps: int

    def load(self, state: Mapping[str, Any], steps: int) -> None:
        """Set the whole state."""
        ...

    def state(self) -> dict[str, Array]:
        """The whole state."""
        ...

    def accumulate(
        self, part: Mapping[str, Array], batches: Sequence[Sequence[Any]]
    ) -> tuple[list[float], Part]:
        """Add up the gradients of batches, beginning with `part`. Returns their losses and the exchanged part."""
        ...

    def apply(self, part: Mapping[str, Array], lr: float | None) -> int:
        """The step of the sums in `part`. Returns a checksum of all states that are not exchanged."""
        ...


class TwinRank:
    """A twin: the model in this process."""

    def __init__(self, trainer: Trainer, name: str) -> None:
        self.name, self.kind, self.steps = name, "twin", 0
        self._trainer = trainer
        self._slots = exchanged_slots(trainer.program)
        exchanged = {s.name for s in self._slots}
        self._others = [s for s in trainer.program.slots if s.name not in exchanged]

    def load(self, state: Mapping[str, Any], steps: int) -> None:
        """Set the whole state."""
        self._trainer.load_state_dict(state)
        self.steps = steps

    def state(self) -> dict[str, Array]:
        """The whole state."""
        return self._trainer.state_dict()

    def accumulate(
        self, part: Mapping[str, Array], batches: Sequence[Sequence[Any]]
    ) -> tuple[list[float], Part]:
        """See Rank."""
        self._set(part)
        losses = [self._trainer.accumulate(*arrays) for arrays in batches]
        return losses, {s.name: s.state.restored(self._trainer.view(s)).copy() for s in self._slots}

    def apply(self, part: Mapping[str, Array], lr: float | None) -> int:
        """See Rank."""
        self._set(part)
        self._trainer.apply(lr)
        self.steps += 1
        crc = 0
        for slot in self._others:
            data = self._trainer.view(slot).tobytes()
            crc = zlib.crc32(data + bytes(4 * slot.words - len(data)), crc)  # as the link sees it
        return crc

    def _set(self, part: Mapping[str, Array]) -> None:
        for slot in self._slots:
            self._trainer.view(slot)[...] = slot.state.stored(part[slot.name])
