"""The tables of `bench --without`: the costs of each network, and the gains of each stage."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..lowering import pipeline
from .markdown import markdown_table
from .program_cost import Cost
from .report import number
from .stage_trials import Core, Trial

LEAST = 0.01  # the least relative gain that counts
MEASURES: Mapping[str, Callable[[Cost], float | None]] = {
    "train": lambda c: c.train,
    "predict": lambda c: c.predict,
    "arena": lambda c: c.arena,
    "text": lambda c: c.text,
    "lines": lambda c: c.lines,
}
WEIGHED = ("train", "predict", "arena")  # the measures by which stages are judged


@dataclass(frozen=True)
class StageRow:
    """A network on a core without some stages (trial), and with all stages (base)."""

    network: str
    core: Core
    base: Trial
    trial: Trial

    @property
    def changes(self) -> dict[str, float]:
        """The relative increase of each measure when the stages are left out."""
        found = {}
        for name, of in MEASURES.items():
            new, old = of(self.trial.cost), of(self.base.cost)
            if new is not None and old:
                found[name] = new / old - 1
        return found

    @property
    def is_same(self) -> bool:
        return not self.trial.needed and self.trial.c == self.base.c

    @property
    def counts(self) -> bool:
        """Whether a change by which stages are weighed is LEAST or more."""
        return any(abs(self.changes.get(name, 0.0)) >= LEAST for name in WEIGHED)

    def line(self) -> str:
        """The result as a line of text."""
        what = ", ".join(self.trial.left_out)
        if self.trial.needed:
            return f"{self.network} {self.core.name} without {what}: needed: {self.trial.needed}"
        if self.is_same:
            return f"{self.network} {self.core.name} without {what}: same C"
        words = [f"{name} {100 * x:+.2f} %" for name, x in self.changes.items()]
        return f"{self.network} {self.core.name} without {what}: {', '.join(words)}"


def costs(rows: Sequence[tuple[str, Core, Trial]]) -> str:
    """The costs of each network with all stages."""
    parts = []
    for core in dict.fromkeys(core for _, core, _ in rows):
        lines = [
            (name, *(_number(of(trial.cost)) for of in MEASURES.values()))
            for name, other, trial in rows
            if other == core
        ]
        parts.append(f"### {core.title}\n\n{markdown_table(('', *MEASURES), lines, (1, 2, 3, 4, 5))}")
    return "\n\n".join(parts)


def _number(x: float | None) -> str:
    return "-" if x is None else number(x)


def summary(rows: Sequence[StageRow]) -> str:
    """A line for each set of stages that was left out."""
    cores = list(dict.fromkeys(r.core for r in rows))
    lines = []
    for names in dict.fromkeys(r.trial.left_out for r in rows):
        own = [r for r in rows if r.trial.left_out == names]
        ranges = [_range([r for r in own if r.core == core]) for core in cores]
        lines.append((", ".join(names), str(_lines_of(names)), *ranges, verdict(own)))
    head = ("without", "lines", *(core.title for core in cores), "verdict")
    return markdown_table(head, lines, (1,))


def _lines_of(names: Sequence[str]) -> int:
    """The number of lines of the modules of these stages."""
    files = {
        Path(inspect.getsourcefile(inspect.unwrap(stage)) or "")
        for stage in pipeline.PIPELINE
        if stage.__name__ in names
    }
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def _range(rows: Sequence[StageRow]) -> str:
    """The number of networks on a core whose C differs, and the ranges of the changes."""
    changed = [r for r in rows if not r.is_same and not r.trial.needed]
    words = []
    for name in WEIGHED:
        found = [r.changes[name] for r in changed if name in r.changes]
        if found and any(found):
            low, high = f"{100 * min(found):+.1f}", f"{100 * max(found):+.1f}"
            words.append(f"{name} {low if low == high else f'{low} ... {high}'}")
    count = f"{len(changed)} of {len(rows)}"
    if needed := sum(bool(r.trial.needed) for r in rows):
        count = f"needed by {needed}, differs in {count}"
    return f"{count}: {', '.join(words)}" if words else count


def verdict(rows: Sequence[StageRow]) -> str:
    """Whether a stage is needed, and where it gains or loses."""
    needed = next((r for r in rows if r.trial.needed), None)
    if needed is not None:
        return f"needed ({needed.network}: {needed.trial.needed})"
    changed = [r for r in rows if not r.is_same]
    if not changed:
        return "no effect"
    gains = _extremes(changed, 1)
    losses = _extremes(changed, -1)
    if not gains and not losses:
        return "less than 1 %"
    words = [f"{what} {'; '.join(found)}" for what, found in (("gains", gains), ("loses", losses)) if found]
    return ", ".join(words)


def candidates(rows: Sequence[StageRow]) -> str:
    """The stages that gain less than LEAST everywhere, and those that lose instructions somewhere."""
    by_set: dict[tuple[str, ...], list[StageRow]] = {}
    for r in rows:
        by_set.setdefault(r.trial.left_out, []).append(r)
    found: dict[str, list[str]] = {"no effect": [], "less than 1 %": []}
    mixed = []
    for names, own in by_set.items():
        word = verdict(own)
        if word in found:
            found[word].append(f"`{', '.join(names)}`")
        elif cores := _losing_cores(own):
            mixed.append(f"- `{', '.join(names)}`: {cores}")
    lines = [f"- {word}: {', '.join(stages) or 'none'}" for word, stages in found.items()]
    lines.append(f"- loses {100 * LEAST:.0f} % of instructions or more somewhere:{'' if mixed else ' none'}")
    return "\n".join([*lines, *(f"  {line}" for line in mixed)])


def _losing_cores(rows: Sequence[StageRow]) -> str:
    """For each core on which the stage loses instructions, its largest loss and its largest gain there."""
    words = []
    for core in dict.fromkeys(r.core for r in rows):
        own = [r for r in rows if r.core == core and not r.trial.needed]
        found = [(r.changes[m], r, m) for r in own for m in ("train", "predict") if m in r.changes]
        low, high = (f(found, key=lambda each: each[0], default=None) for f in (min, max))
        if low is not None and high is not None and low[0] <= -LEAST:
            ends = (f"{100 * x:+.1f} % ({r.network}, {m})" for x, r, m in (low, high))
            words.append(f"{core.name} {' ... '.join(ends)}")
    return ", ".join(words)


def _extremes(rows: Sequence[StageRow], sign: int) -> list[str]:
    """For each measure the largest gain (sign 1) or loss (-1) of the stage, with its network and core."""
    found = []
    for name in WEIGHED:
        values = [(sign * r.changes[name], r) for r in rows if name in r.changes]
        best, row = max(values, key=lambda pair: pair[0], default=(0.0, None))
        if row is not None and best >= LEAST:
            found.append(f"{name} {100 * best:.1f} % ({row.network}, {row.core.name})")
    return found


def details(rows: Sequence[StageRow]) -> str:
    """A table for each core: the networks that change by LEAST or more."""
    parts = []
    for core in dict.fromkeys(r.core for r in rows):
        lines = list(_detail_lines([r for r in rows if r.core == core]))
        if lines:
            head = ("without", "network", *MEASURES)
            parts.append(f"### {core.title}\n\n{markdown_table(head, lines, (2, 3, 4, 5, 6))}")
    return "\n\n".join(parts)


def _detail_lines(rows: Sequence[StageRow]) -> Iterator[tuple[str, ...]]:
    for names in dict.fromkeys(r.trial.left_out for r in rows):
        for r in rows:
            if r.trial.left_out == names and not r.is_same and not r.trial.needed and r.counts:
                changes = r.changes
                cells = (f"{100 * changes[m]:+.2f}" if m in changes else "-" for m in MEASURES)
                yield (", ".join(names), r.network, *cells)


def tables(bases: Sequence[tuple[str, Core, Trial]], rows: Sequence[StageRow]) -> str:
    """All tables as Markdown."""
    parts = [
        f"## All stages\n\n{costs(bases)}",
        f"## Candidates\n\n{candidates(rows)}" if rows else "",
        f"## Without stages\n\n{summary(rows)}" if rows else "",
        f"## Networks that change by {100 * LEAST:.0f} % or more\n\n"
        f"Changes in percent, without the stage.\n\n{details(rows)}"
        if rows
        else "",
    ]
    return "\n\n".join(part for part in parts if part)
