"""Counts of local steps: the cycles of the boards' cores, or instructions in emulators, for each kind of board."""

from __future__ import annotations

from collections.abc import Iterable

from ..device.rounds import LocalTraining


class Counts:
    """Sums over boards. A record of Flower has them as lines of text."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._sums: dict[tuple[str, str], tuple[int, int]] = {}  # by kind and name: the count, and its steps
        for line in lines:
            kind, name, count, steps = line.split("\t")
            self._add(kind, name, int(count), int(steps))

    def add(self, kind: str, local: LocalTraining) -> None:
        for name, count in (("cycles", local.cycles), ("instructions", local.instructions)):
            if count:
                self._add(kind, name, count, local.steps)

    def _add(self, kind: str, name: str, count: int, steps: int) -> None:
        old, old_steps = self._sums.get((kind, name), (0, 0))
        self._sums[kind, name] = old + count, old_steps + steps

    @property
    def lines(self) -> list[str]:
        """The lines that __init__ takes."""
        return [f"{kind}\t{name}\t{count}\t{steps}" for (kind, name), (count, steps) in self._sums.items()]

    def of_a_step(self) -> list[str]:
        """`64,622 instructions a step`, for each kind that counts; with its name where there are several."""
        several = len(self._sums) > 1
        return [
            f"{count / steps:,.0f} {name} a step{f' of {kind}' if several else ''}"
            for (kind, name), (count, steps) in sorted(self._sums.items())
        ]
