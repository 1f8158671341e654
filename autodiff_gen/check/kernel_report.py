"""The output of the program `kernels/compare`, and one line of text per row of a backend's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..kernels.contract import CONTRACT
from ..kernels.table import Kernel


@dataclass
class CaseRun:
    """The results of a row's cases with arrays aligned to `align` bytes. left_out: cases that do not meet the row's
    `when`; worst: the largest error; of_bound: the largest error as a part of its bound."""

    align: int
    cases: int = 0
    left_out: int = 0
    wrong: int = 0
    worst: float = 0.0
    of_bound: float = 0.0
    examples: list[str] = field(default_factory=list)
    died: str = ""

    @property
    def good(self) -> bool:
        return not self.wrong and not self.died


def read(text: str, by_row: Sequence[dict[int, CaseRun]]) -> int | None:
    """Add the program's output to the runs of its rows; returns the last row that it began, if any."""
    last = None
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] not in ("begin", "wrong", "done"):
            continue
        number = int(words[1])
        if words[0] == "begin":
            last = number
            continue
        align = int(words[2])
        run = by_row[number].setdefault(align, CaseRun(align))
        if words[0] == "wrong":
            run.examples.append(" ".join(words[3:]))
        else:
            run.cases, run.left_out, run.wrong = map(int, words[3:6])
            run.worst, run.of_bound = float(words[6]), float(words[7])
    return last


def line_of(row: Kernel, runs: dict[int, CaseRun]) -> tuple[str, bool]:
    """The report of a row, and whether it passed."""
    name = f"{row.name} {row.symbol}"
    cases = sum(r.cases for r in runs.values())
    left_out = sum(r.left_out for r in runs.values())
    when = " and ".join(map(str, row.when))
    bad = [r for r in runs.values() if not r.good]
    if bad:
        return f"{name}: WRONG: {_fault(row.name, runs, bad)}", False
    if not cases:
        return f"{name}: WRONG: no case of the shape table meets {when}, so it was not tested", False
    worst, of_bound = (max(getattr(r, k) for r in runs.values()) for k in ("worst", "of_bound"))
    text = f"{name}: {cases} cases right, worst error {worst:.2g}, {of_bound:.0%} of its bound"
    return text + (f"; {left_out} left out by {when}" if left_out else ""), True


def _fault(kernel: str, runs: dict[int, CaseRun], bad: Sequence[CaseRun]) -> str:
    first = bad[0]
    how = first.died or f"differs from ref in {first.wrong} of {first.cases} cases"
    enough = [r.align for r in runs.values() if r.good and r.cases]
    if enough and min(enough) > max(r.align for r in bad):
        return (
            f"right with arrays at multiples of {min(enough)} bytes, {how} at multiples of {first.align}: "
            f'its row needs when = ["align >= {min(enough)}"]'
        )
    if not first.examples:
        return how
    facts, words = CONTRACT[kernel].facts, first.examples[0].split()
    needed = next((word.removeprefix("scratch=") for word in words if word.startswith("scratch=")), None)
    if needed is not None:
        how = f"needs {needed} bytes of scratch memory, more than its row's formula says"
    elif "outside=1" in words:
        how = "writes outside its output"
    case = " ".join(word for word in words if word.partition("=")[0] in facts)
    return f"{how}, such as {case}" + (" without scratch memory" if "without_scratch=1" in words else "")
