"""A page of the passes: for each the graph before and after, drawn from the example that a test executes."""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from pathlib import Path

from intro import intro

import autodiff_gen.functional  # noqa: F401  (fills the registry)
from autodiff_gen.lowering import pipeline
from autodiff_gen.report.layered_graph import Box, drawn

LONGEST = 26  # characters of a line in a box
NODE = re.compile(r"((?:%\d+[^:=]*: [^=]*?,? ?)+) = (\w+)\((.*)\)$")
RESULT = re.compile(r"%\d+")


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
    """Old states are not in the header: a name that is read and is no value is an old state."""
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
            picture = drawn(own, f"{name}: {title}", changed(own, other))
            parts.append(f"<figure><figcaption>{title}</figcaption>{picture}</figure>")
        parts.append("</div>\n")
    return "\n".join(parts)
