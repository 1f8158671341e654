"""A graph as a picture: boxes in rows from inputs at the top to outputs at the bottom, and lines that pass no box.

The rows follow Sugiyama, Tagawa and Toda 1981: a box is below all that it reads; a line that passes rows has a place in
each of them; the order in a row follows the neighbours in the row before, and then in the row after.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from .svg import LINE, Picture, width_of

GAP_X, GAP_Y, PAD, BEND = 18.0, 34.0, 7.0, 0.45
SWEEPS = 8  # over all rows, down and up; rows do not change after a few


@dataclass(frozen=True)
class Box:
    """A node, an input or an output of a graph: the first line of text is its name. operands: the boxes that it reads,
    which come before it; share: how much of its lower edge is filled; attributes: of the SVG element of the box."""

    lines: tuple[str, ...]
    operands: tuple[int, ...]
    kind: str
    share: float | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def width(self) -> float:
        return max(map(width_of, self.lines)) + 2 * PAD

    @property
    def height(self) -> float:
        return LINE * len(self.lines) + PAD + (PAD if self.share is not None else 0.0)


def drawn(boxes: Sequence[Box], label: str, new: Collection[int] = (), role: str = "img") -> Picture:
    """The picture of a graph; boxes of `new` have another colour. role: the role that screen readers are told."""
    layout = _Layout(boxes)
    picture = Picture(label, role=role)
    for route in layout.routes:
        picture.line(route)
    picture.cover(max(layout.x), 0.0)
    for k, box in enumerate(boxes):
        x, y, w = layout.left(k), layout.y[k], box.width
        with picture.group(box.attributes):
            kind = f"{box.kind} new" if k in new else box.kind
            picture.box(x, y, w, box.height, kind, round=4 if box.kind == "node" else 10)
            for i, line in enumerate(box.lines):
                picture.text(x + w / 2, y + LINE * (i + 0.9), line, "" if i == 0 else "minor", "middle")
            if box.share is not None:
                bar = x + PAD, y + box.height - PAD - 1, w - 2 * PAD, PAD - 2
                picture.box(*bar, "whole")
                picture.box(*bar[:2], box.share * bar[2], bar[3], "share")
    return picture


class _Layout:
    """Places of the boxes of a graph, and of the lines in rows that they pass; both are places by number, the boxes
    first."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        self.boxes = boxes
        row = _rows(boxes)
        self.width = [box.width for box in boxes]
        self.above: list[list[int]] = [[] for _ in boxes]  # of each place, the places that lead to it
        self.lines: list[list[int]] = []  # the places of each line
        for k, box in enumerate(boxes):
            for o in dict.fromkeys(box.operands):
                line = [o]
                for between in range(row[o] + 1, row[k]):
                    row.append(between)
                    self.width.append(0.0)
                    self.above.append([line[-1]])
                    line.append(len(row) - 1)
                self.above[k].append(line[-1])
                self.lines.append([*line, k])
        self.below: list[list[int]] = [[] for _ in row]
        for k, above in enumerate(self.above):
            for o in above:
                self.below[o].append(k)
        self.rows = [[k for k, r in enumerate(row) if r == number] for number in range(max(row) + 1)]
        self.x = [0.0] * len(row)  # of the middle
        self._order()
        self._move()
        least = min(self.left(k) for k in range(len(row)))
        self.x = [x - least for x in self.x]
        self.y, y = [0.0] * len(row), 0.0
        self.heights = [max([boxes[k].height for k in r if k < len(boxes)], default=0.0) for r in self.rows]
        for r, height in zip(self.rows, self.heights, strict=True):
            for k in r:
                self.y[k] = y
            y += height + GAP_Y
        self.row = row

    def left(self, k: int) -> float:
        return self.x[k] - self.width[k] / 2

    def _order(self) -> None:
        """The order in each row: by the mean place of the neighbours."""
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            neighbours = self.above if down else self.below
            place = {k: float(i) for r in self.rows for i, k in enumerate(r)}
            for r in self.rows if down else reversed(self.rows):
                key = {k: _mean([place[o] for o in neighbours[k]], place[k]) for k in r}
                r.sort(key=key.__getitem__)
                place |= {k: float(i) for i, k in enumerate(r)}

    def _move(self) -> None:
        """Each place goes as near to the middle of its neighbours as the others in its row allow."""
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            for r in self.rows if down else reversed(self.rows):
                wanted = []
                for k in r:
                    near = (self.above if down else self.below)[k]
                    wanted.append(_mean([self.x[o] for o in near], self.x[k]))
                sizes = [self.width[k] for k in r]
                apart = [(a + b) / 2 + GAP_X for a, b in itertools.pairwise(sizes)]
                for k, x in zip(r, _apart(wanted, apart), strict=True):
                    self.x[k] = x

    @property
    def routes(self) -> list[str]:
        """The path of each line, from the lower edge of a box to the upper edge of another."""
        paths = []
        for line in self.lines:
            first, last = line[0], line[-1]
            y = self.y[first] + self.boxes[first].height
            path = f"M{self.x[first]:.1f} {y:.1f}"
            for before, k in itertools.pairwise(line):
                y = self.y[before] + self.heights[self.row[before]]
                start, end = self.x[before], self._end(before, k) if k == last else self.x[k]
                path += f"V{y:.1f}" * (before == first)
                bend = BEND * (self.y[k] - y)
                path += (
                    f"C{start:.1f} {y + bend:.1f} {end:.1f} {self.y[k] - bend:.1f} {end:.1f} {self.y[k]:.1f}"
                )
                path += f"V{self.y[k] + self.heights[self.row[k]]:.1f}" * (k != last)
            paths.append(path)
        return paths

    def _end(self, before: int, k: int) -> float:
        """Where a line meets a box: its lines are apart from each other, in the order of the places before it."""
        order = sorted(range(len(self.above[k])), key=lambda i: self.x[self.above[k][i]])
        at = order.index(self.above[k].index(before))
        return self.left(k) + self.width[k] * (at + 1) / (len(order) + 1)


def _rows(boxes: Sequence[Box]) -> list[int]:
    """The row of each box: its distance from the inputs; inputs are in the row above their first reader."""
    row = [0] * len(boxes)
    for k, box in enumerate(boxes):
        row[k] = max((row[o] + 1 for o in box.operands), default=0)
    for k, box in enumerate(boxes):
        readers = [row[r] for r, other in enumerate(boxes) if k in other.operands]
        if box.kind == "input" and readers:
            row[k] = min(readers) - 1
    return row


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _apart(wanted: Sequence[float], apart: Sequence[float]) -> list[float]:
    """Numbers that are at least `apart` from each other, with the least squares of distances from `wanted`: neighbours
    that would be too near become a group around the mean of their wishes."""
    offsets = [0.0]
    for distance in apart:
        offsets.append(offsets[-1] + distance)
    groups: list[
        tuple[float, int]
    ] = []  # the sum of the members' wishes, without their offsets, and their count
    for x, offset in zip(wanted, offsets, strict=True):
        total, count = x - offset, 1
        while groups and groups[-1][0] / groups[-1][1] > total / count:
            more, many = groups.pop()
            total, count = total + more, count + many
        groups.append((total, count))
    places = [total / count for total, count in groups for _ in range(count)]
    return [x + offset for x, offset in zip(places, offsets, strict=True)]
