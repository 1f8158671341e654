"""A page of the passes: for each the graph before and after, drawn from the example that a test executes."""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from intro import intro
from svg import LINE, Picture, width_of

import autodiff_gen.functional  # noqa: F401  (fills the registry)
from autodiff_gen.lowering import pipeline

GAP_X, GAP_Y, PAD = 18.0, 34.0, 7.0
LONGEST = 26  # characters of a line in a box
NODE = re.compile(r"((?:%\d+[^:=]*: [^=]*?,? ?)+) = (\w+)\((.*)\)$")
RESULT = re.compile(r"%\d+")


@dataclass(frozen=True)
class Box:
    """A node, an input or an output of a graph; operands: the boxes that it reads."""

    lines: tuple[str, ...]
    operands: tuple[int, ...]
    kind: str


def boxes(text: str) -> list[Box]:
    """The boxes of a graph as the printer writes it; lines of a region belong to the box of their node."""
    header, *lines = re.sub(r",\n\s*", ", ", text.strip("\n")).splitlines()
    found: list[Box] = []
    known: dict[str, int] = {}
    for name, kind in re.findall(r"(\w+): (\w+\[[\d,n]*\])", header):
        known[name] = len(found)
        found.append(Box((name, kind), (), "input"))
    for line in lines:
        node, output = (
            NODE.match(line.strip()),
            re.match(r"\s*([\w' ]+|finite only.*?)(?: <-|:) (\S+)$", line),
        )
        if node and not re.match(r"\s{6,}", line[len(header) - len(header.lstrip()) :]):
            arguments = _arguments(node[3])
            _add_states(arguments, known, found)
            operands = tuple(known[a] for a in arguments if a in known)
            shown = [a for a in arguments if a not in known]
            for name in RESULT.findall(node[1]):
                known[name] = len(found)
            types = ", ".join(re.findall(r"\w+\[[\d,n]*\]", node[1]))
            found.append(Box((node[2], *_shortened(shown), types), operands, "node"))
        elif output and "with" not in output[1]:
            _add_states([output[2]], known, found)
            found.append(Box((output[1],), (known[output[2]],) if output[2] in known else (), "output"))
        elif line.strip() and found and found[-1].kind == "node":  # of a region, or `...`
            last = found[-1]
            found[-1] = Box(
                (*last.lines, _cut(re.sub(r": \w+\[[\d,n]*\]", "", line.strip()), 34)), last.operands, "node"
            )
    return found


def _arguments(text: str) -> list[str]:
    """The arguments of a call; commas in brackets do not separate."""
    return [a.strip() for a in re.findall(r"(?:[^,(]|\([^()]*(?:\([^()]*\)[^()]*)*\))+", text)]


def _add_states(names: list[str], known: dict[str, int], found: list[Box]) -> None:
    """Old states are not in the header: what is read and is no value is one."""
    for name in names:
        if re.fullmatch(r"[a-z]\w*", name) and name not in known:
            known[name] = len(found)
            found.append(Box((name, "state"), (), "input"))


def _shortened(attributes: list[str]) -> list[str]:
    """The attributes that say something, in short lines."""
    dull = re.compile(
        r"(?:padding|dilation|stride|groups|keepdim|fill|steps|reverse|carries|xs|pool_\w+|const)\b"
    )
    return [_cut(a, LONGEST) for a in attributes if a and not dull.match(a)][:2]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def levels(found: list[Box]) -> list[list[int]]:
    """The boxes by distance from the inputs; inputs are above the first that reads them."""
    level = [0] * len(found)
    for k, box in enumerate(found):
        level[k] = max((level[o] + 1 for o in box.operands), default=0)
    for k, box in enumerate(found):
        readers = [level[r] for r, other in enumerate(found) if k in other.operands]
        if box.kind == "input" and readers:
            level[k] = min(readers) - 1
    rows = [[k for k, at in enumerate(level) if at == row] for row in range(max(level) + 1)]
    place = {k: float(i) for row in rows for i, k in enumerate(row)}
    for row in rows[1:]:  # a box is below the middle of what it reads
        for k in row:
            operands = found[k].operands
            place[k] = sum(place[o] for o in operands) / len(operands) if operands else place[k]
        row.sort(key=place.__getitem__)
        place |= {k: place[k] if len(row) == 1 else float(i) for i, k in enumerate(row)}
    return rows


def drawn(found: list[Box], new: set[int], label: str) -> Picture:
    """The graph, from inputs at the top to outputs at the bottom; boxes of `new` have another colour."""
    picture = Picture(label)
    sizes = {
        k: (max(width_of(line) for line in box.lines) + 2 * PAD, LINE * len(box.lines) + PAD)
        for k, box in enumerate(found)
    }
    rows = [row for row in levels(found) if row]
    widths = [sum(sizes[k][0] for k in row) + GAP_X * (len(row) - 1) for row in rows]
    at: dict[int, tuple[float, float]] = {}
    y = 0.0
    for row, wide in zip(rows, widths, strict=True):
        x = (max(widths) - wide) / 2
        for k in row:
            at[k] = (x, y)
            x += sizes[k][0] + GAP_X
        y += max(sizes[k][1] for k in row) + GAP_Y
    for k, box in enumerate(found):
        for i, o in enumerate(box.operands, 1):
            x0, y0 = at[o][0] + sizes[o][0] / 2, at[o][1] + sizes[o][1]
            x1, y1 = at[k][0] + sizes[k][0] * i / (len(box.operands) + 1), at[k][1]
            bend = (y1 - y0) / 2
            picture.line(
                f"M{x0:.1f} {y0:.1f}C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"
            )
    for k, box in enumerate(found):
        (x, y), (w, h) = at[k], sizes[k]
        picture.box(
            x, y, w, h, f"{box.kind} new" if k in new else box.kind, round=4 if box.kind == "node" else 10
        )
        for i, line in enumerate(box.lines):
            picture.text(x + w / 2, y + LINE * (i + 0.9), line, "" if i == 0 else "minor", "middle")
    return picture


def changed(found: list[Box], other: list[Box]) -> set[int]:
    """The nodes that the other graph lacks: another op, attribute, type or operand."""

    def key(of: list[Box], k: int) -> tuple[object, ...]:
        return (of[k].lines, tuple(of[o].lines for o in of[k].operands))

    left = Counter(key(other, k) for k in range(len(other)))
    new = set()
    for k in range(len(found)):
        if left[key(found, k)]:
            left[key(found, k)] -= 1
        elif found[k].kind == "node":
            new.add(k)
    return new


def page(root: Path) -> str:
    """The page understand/passes.md."""
    sys.path.insert(0, str(root / "tests" / "support"))
    from graph_text import example  # reads the examples that tests/passes executes

    sys.path.remove(str(root / "tests" / "support"))
    parts = [intro("passes")]
    for stage in pipeline.PIPELINE:
        name, module = stage.__name__, stage.__module__
        if not module.startswith("autodiff_gen.passes."):
            continue
        doc = importlib.import_module(module).__doc__ or ""
        shown = example(doc)
        assert shown is not None, module
        summary = re.split(r"\n\n    |\n\n", doc.strip())[0]
        before, after = map(boxes, shown)
        parts.append(f"## {name}\n\n{' '.join(summary.split())}\n")
        parts.append('<div class="pair">')
        for title, own, other in (("before", before, after), ("after", after, before)):
            picture = drawn(own, changed(own, other), f"{name}: {title}")
            parts.append(f"<figure><figcaption>{title}</figcaption>{picture}</figure>")
        parts.append("</div>\n")
    return "\n".join(parts)
