"""The part of a model's state that ranks of synchronous training exchange at each step: the states that `accumulate`
changes. These are sums of gradients and of samples, which are added up over the ranks; running statistics; counters."""

from __future__ import annotations

from dataclasses import dataclass

from .program import Program, Slot


@dataclass(frozen=True)
class ExchangedRun:
    """States that follow each other: `offset` and `bytes` in the state."""

    slots: tuple[Slot, ...]
    offset: int

    @property
    def bytes(self) -> int:
        return 4 * sum(s.words for s in self.slots)

    @property
    def comment(self) -> str:
        """The names of the first and the last state."""
        return " ... ".join(dict.fromkeys([self.slots[0].name, self.slots[-1].name]))


def exchanged_part(program: Program) -> tuple[ExchangedRun, ...]:
    """The exchanged states as runs, in the order of the state; none for a model without `accumulate`."""
    changed = _updated(program, "accumulate")
    runs: list[ExchangedRun] = []
    offset = 0
    for slot in program.slots:
        if slot.state in changed:
            if runs and runs[-1].offset + runs[-1].bytes == offset:
                last = runs.pop()
                runs.append(ExchangedRun((*last.slots, slot), last.offset))
            else:
                runs.append(ExchangedRun((slot,), offset))
        offset += 4 * slot.words
    return tuple(runs)


def is_sum(slot: Slot) -> bool:
    """Whether a state of the exchanged part is added up over the ranks, and cleared by `apply`."""
    return slot.role == "optimizer"


def draws_in_apply(program: Program, slot: Slot) -> bool:
    """Whether `apply` increases this counter too, as where it rounds 8-bit weights at random."""
    return slot.role == "counter" and slot.state in _updated(program, "apply")


def _updated(program: Program, entry: str) -> set[object]:
    return {state for e in program.entries if e.name == entry for state in e.plan.graph.updates}
