"""Losses of runs as a picture: an SVG file that needs no other, in the colours of the reader's scheme."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .svg import Picture, width_of

WIDTH, HEIGHT, LEFT, GAP = 640.0, 220.0, 62.0, 46.0
COLOURS = ("#1e6fd0", "#e8590c", "#2b8a3e", "#9c36b5", "#c2255c", "#0b7285", "#b8860b", "#778089")
MOST = len(COLOURS)  # curves that can be told apart
STYLE = """text { font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #24292f }
.title { font-weight: bold } .page { fill: #ffffff } .grid { stroke: #d0d7de; fill: none }
.curve { fill: none; stroke-width: 1.8; stroke-linejoin: round } .dot { stroke-width: 5; stroke-linecap: round }
@media (prefers-color-scheme: dark) { text { fill: #d7dde8 } .page { fill: #1d222c } .grid { stroke: #3d444d } }
"""


@dataclass(frozen=True)
class Curve:
    """Numbers of a run, in ascending order of x."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """Curves with the same axes."""

    title: str
    x: str  # the unit of the x-axis
    curves: Sequence[Curve]


def loss_picture(label: str, panels: Sequence[Panel]) -> str:
    """The text of the SVG file. Curves with the same name have the same colour in all panels."""
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    assert len(names) <= MOST
    picture = Picture(label)
    y = 14.0
    for panel in panels:
        y = _draw(picture, panel, names, y) + GAP
    picture.cover(LEFT + WIDTH + 12, y - GAP)
    style = STYLE + "".join(
        f".c{k} {{ stroke: {colour}{'; stroke-dasharray: 6 3' * (k % 2)} }}\n"
        for k, colour in enumerate(COLOURS)
    )
    return picture.file(style)


def _draw(picture: Picture, panel: Panel, names: Sequence[str], y: float) -> float:
    """Draw a panel whose first line of text is at y; returns its lower edge."""
    picture.text(LEFT, y, panel.title, "title")
    x = LEFT
    y += 18
    for curve in panel.curves:
        wide = 34 + width_of(curve.name)
        if x > LEFT and x + wide > LEFT + WIDTH:
            x, y = LEFT, y + 16
        picture.line(f"M{x} {y - 4}h22", f"curve c{names.index(curve.name)}")
        picture.text(x + 27, y, curve.name)
        x += wide + 18
    top = y + 14
    floor = top + HEIGHT
    xs = [px for curve in panel.curves for px, _ in curve.points]
    ys = [py for curve in panel.curves for _, py in curve.points]
    low = min(0.0, *ys)
    high = max(ys) if max(ys) > low else low + max(1.0, abs(low))
    first, last = min(xs), max(xs)
    for tick in ticks(low, high):
        at = floor - HEIGHT * (tick - low) / (high - low)
        picture.line(f"M{LEFT} {at:.1f}h{WIDTH}", "grid")
        picture.text(LEFT - 6, at + 4, f"{tick:g}", anchor="end")
    for tick in ticks(first, last):
        picture.text(
            LEFT + WIDTH * (tick - first) / (last - first or 1.0), floor + 16, f"{tick:,g}", anchor="middle"
        )
    picture.text(LEFT + WIDTH / 2, floor + 32, panel.x, anchor="middle")
    for curve in panel.curves:
        places = [
            (LEFT + WIDTH * (px - first) / (last - first or 1.0), floor - HEIGHT * (py - low) / (high - low))
            for px, py in curve.points
        ]
        kind = f"curve c{names.index(curve.name)}"
        if len(places) == 1:
            places, kind = places * 2, f"{kind} dot"
        picture.line("M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in places), kind)
    return floor + 36


def ticks(low: float, high: float) -> Iterator[float]:
    """Round numbers from low to high, about five."""
    span = high - low
    if span < 1e-300:  # a part of it may be 0
        yield low
        return
    rough = span / 5
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        yield float(f"{k * step:.12g}")


def means(points: Sequence[tuple[float, float]], most: int = 320) -> tuple[list[tuple[float, float]], int]:
    """At most `most` points: the means of groups of neighbours, each at the last x of its group; and the size of a
    group."""
    size = -(-len(points) // most)
    groups = [points[k : k + size] for k in range(0, len(points), size)]
    return [(group[-1][0], sum(y for _, y in group) / len(group)) for group in groups], size
