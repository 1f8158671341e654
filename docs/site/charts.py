"""Charts of the tables in docs/benchmarks.md: bars of the numbers that the benchmarks wrote there."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from autodiff_gen.report.svg import Picture

TEXT = (Path(__file__).resolve().parents[1] / "benchmarks.md").read_text()
KINDS = ("forward", "backward", "loss", "update", "again", "scratch")  # colours of assets/site.css

Group = tuple[str, Sequence[tuple[str, float]]]  # a label, and series with their values


def table(heading: str) -> list[dict[str, str]]:
    """The rows of the table whose head begins with `heading`, or that follows a line that contains it."""
    at = re.search(rf"^\|? ?[^\n]*{re.escape(heading)}[^\n]*$", TEXT, re.MULTILINE)
    assert at is not None, heading
    found = re.search(r"^(\|[^\n]*\|)\n\|[ :|-]+\|\n((?:\|[^\n]*\|\n)+)", TEXT[at.start() :], re.MULTILINE)
    assert found is not None, heading
    head = [cell.strip() for cell in found[1].strip("|").split("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[2].splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


def number(cell: str) -> float | None:
    """The number of a cell, without text in parentheses; None where there is none."""
    found = re.match(r"[\d,.]+", cell)
    return None if found is None else float(found[0].replace(",", ""))


def legend(names: Iterable[tuple[str, str]]) -> str:
    """The legend of pairs (class of a colour, meaning); the lines of a narrow window are shorter."""
    keys = (f'<span><i class="{kind}"></i>{html.escape(name)}</span>' for kind, name in names)
    return f'<div class="legend">{"".join(keys)}</div>'


def bars(groups: Iterable[Group], unit: str, label: str, log: bool = False) -> str:
    """Groups of horizontal bars with their numbers, as wide as the window allows; `log`: the length of a bar is the
    logarithm of its value."""
    groups = [(name, values) for name, values in groups if values]
    series = list(dict.fromkeys(s for _, values in groups for s, _ in values))
    kinds = dict(zip(series, KINDS, strict=False))
    numbers = [v for _, values in groups for _, v in values]
    low, high = min(numbers), max(numbers)

    def bar(name: str, which: str, value: float) -> str:
        share = (math.log(value / low) + 0.3) / (math.log(high / low) + 0.3) if log else value / high
        shown = f"{value:,.3g}" if value < 100 else f"{value:,.0f}"
        title = html.escape(f"{name}, {which}: {value:,g} {unit}")
        return (
            f'<div title="{title}"><i class="{kinds[which]}" style="--share: {share:.3f}"></i>{shown}</div>'
        )

    rows = (
        f"<span>{html.escape(name)}</span><div>{''.join(bar(name, *v) for v in values)}</div>"
        for name, values in groups
    )
    scale = f"<span></span><span>{unit}{', logarithmic' * log}</span>"
    opening = f'<div class="bars" role="img" aria-label="{html.escape(f"{label}; {unit}")}">'
    return legend((kinds[s], s) for s in series) + opening + "".join(rows) + scale + "</div>"


def memory_of_programs() -> str:
    """How many times the memory of the generated C other programs take, by workload."""
    programs = ("hand-written C", "XLA", "PyTorch eager", "kann", "AIfES")
    groups = []
    for row in table("| workloads | states |"):
        own = number(row["states and arena"])
        values = [(p, number(row[p])) for p in programs]
        groups.append(
            (row["workloads"], [("autodiff_gen", 1.0), *((p, v / own) for p, v in values if v and own)])
        )
    return bars(groups, "times the bytes of autodiff_gen", "memory of a training step by program")


def instructions_of_boards() -> str:
    """Instructions per multiply-accumulate, by workload and core."""
    cores = ("Cortex-M4F", "Cortex-M55", "Cortex-A53")
    tables = {core: {row[""]: number(row["per MAC"]) for row in table(f"### {core} (")} for core in cores}
    groups = [(w, [(core, tables[core][w] or 0.0) for core in cores]) for w in tables[cores[0]]]
    return bars(groups, "instructions per multiply-accumulate", "a training step by core")


def time_on_the_host() -> str:
    """Microseconds of a training step on the host, by program."""
    groups = []
    for row in table("| autodiff_gen, us |"):
        programs = [name for name in row if name]
        values = [(name.removesuffix(", us"), number(row[name])) for name in programs]
        groups.append((row[""], [(name, v) for name, v in values if v]))
    return bars(groups, "microseconds of a training step", "a training step on the host by program", log=True)


def memory_of_networks() -> str:
    """The memory of networks with batch 1, beside the bound of each."""
    groups = []
    for row in table("| networks | states |"):
        states, arena, bound = (number(row[k]) for k in ("states", "arena", "bound of the network"))
        kilobytes = [("states", states), ("arena", arena), ("bound of the arena", bound)]
        groups.append((row["networks"], [(name, v / 1000) for name, v in kilobytes if v]))
    return bars(groups, "kilobytes", "memory of networks")


def losses_of_the_benchmark() -> str:
    """The losses of each network of the proposed benchmark over its training steps, from 0 to its largest."""
    width, height = 190.0, 64.0
    pictures = []
    for row in table("| network | to 200 |"):
        name, *cells = row.values()
        steps = [number(key.removeprefix("to ")) or 0.0 for key in list(row)[1:]]
        losses = [number(cell) or 0.0 for cell in cells]
        picture = Picture(f"the loss of {name}: {losses[0]:g} at first, {losses[-1]:g} at last")
        left, top = 34.0, max(losses)
        points = [
            (left + s / steps[-1] * width, height * (1 - v / top) + 8)
            for s, v in zip(steps, losses, strict=True)
        ]
        picture.line(f"M{left} 8V{height + 8}H{left + width}")
        picture.line("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), "curve")
        picture.text(left - 4, 12, f"{top:.2f}", "", "end")
        picture.text(left - 4, height + 12, "0", "", "end")
        picture.text(left + width + 4, points[-1][1] + 4, f"{losses[-1]:.2f}")
        picture.text(left + width, height + 22, f"{steps[-1]:,.0f} steps", "", "end")
        pictures.append(f"<figure><figcaption>{html.escape(name)}</figcaption>{picture}</figure>")
    return f'<div class="pair">{"".join(pictures)}</div>'


CHARTS: dict[str, Callable[[], str]] = {
    "memory-of-programs": memory_of_programs,
    "memory-of-networks": memory_of_networks,
    "losses-of-the-benchmark": losses_of_the_benchmark,
    "instructions-of-boards": instructions_of_boards,
    "time-on-the-host": time_on_the_host,
}
