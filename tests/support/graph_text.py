"""Graphs from their text form (ir/printer.py), and the examples in the docstrings of passes.

An example is an indented block of a docstring: the graph before, `->`, and the graph after, either below each other or
side by side. A line that ends in a comma goes on in the next one. Names that appear only in updates (`w'`) are states.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from autodiff_gen.ir.build import apply_node, constant, make_input, make_state
from autodiff_gen.ir.graph import Graph, State
from autodiff_gen.ir.node import OPS, Node, Region, Value
from autodiff_gen.ir.types import DTYPES, Dim, Type

TYPE = r"(\w+)\[([\dn,]*)\]"
LARGEST = 8  # batch: types do not print it


def example(doc: str) -> tuple[str, str] | None:
    """(before, after) of the first example in the docstring of a module."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", doc + "\n", flags=re.MULTILINE)
    block = next((textwrap.dedent(b) for b in blocks if "->" in b), None)
    if block is None:
        return None
    lines = block.strip("\n").splitlines()
    arrow = next(line for line in lines if "->" in line)
    if arrow.strip() == "->":
        at = lines.index(arrow)
        return "\n".join(lines[:at]), "\n".join(lines[at + 1 :])
    column = arrow.index("->")
    return "\n".join(line[:column].rstrip() for line in lines), "\n".join(
        line[column + 2 :] for line in lines
    )


def normalised(text: str) -> list[str]:
    """The lines without indentation, their values numbered in the order in which they appear."""
    names: dict[str, str] = {}
    text = re.sub(r",\n\s*", ", ", text)
    text = re.sub(r"%\d+", lambda m: names.setdefault(m[0], f"%{len(names)}"), text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def _type(dtype: str, shape: str) -> Type:
    return Type(DTYPES[dtype], tuple(Dim(1, LARGEST) if d == "n" else int(d) for d in shape.split(",") if d))


def parsed(text: str, guard: str | None = None) -> Graph:
    """The graph that prints as `text`; nodes with regions are scans."""
    header, *lines = normalised(text)
    found = re.fullmatch(r"entry (\w+)\((.*)\)", header)
    assert found is not None, header
    inputs = {name: make_input(name, _type(*type)) for name, *type in re.findall(rf"(\w+): {TYPE}", found[2])}
    values: dict[str, Value] = dict(inputs)
    types = {
        m[1]: _type(m[2], m[3]) for line in lines for m in re.finditer(rf"(%\d+)(?: \w+)?: {TYPE}", line)
    }
    states: dict[str, State] = {}
    for name, source in re.findall(r"^(\w+)' <- (%\d+)$", "\n".join(lines), flags=re.MULTILINE):
        states[name] = State(name, types[source], None)
        values[name] = make_state(states[name])
    rows = iter(lines)
    for line in rows:
        if "=" in line and "<-" not in line:
            _define(line, rows, values)
    roots = [re.fullmatch(r"(\w+)('?) <- (\S+)", line) for line in lines if "<-" in line]
    outputs = {m[1]: values[m[3]] for m in roots if m is not None and not m[2]}
    updates = {states[m[1]]: values[m[3]] for m in roots if m is not None and m[2]}
    return Graph(found[1], tuple(inputs.values()), outputs, updates, guard=guard)


def _define(line: str, rows: Iterator[str], values: dict[str, Value]) -> None:
    """One node, and for a scan the lines of its body."""
    left, _, right = line.partition(" = ")
    call = ast.parse(right.replace("%", "_"), mode="eval").body
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name), line
    operands = [_operand(a, values) for a in call.args]
    attrs = {k.arg: _attribute(k.value, values) for k in call.keywords if k.arg is not None}
    results = re.findall(rf"(%\d+): {TYPE}", left)
    if call.func.id == "scan":
        params, region = _body(next(rows), rows, values)
        types = tuple(_type(dtype, shape) for _, dtype, shape in results)
        made = Node(OPS["scan"], tuple(operands), attrs, types, (Region(params, region),))
    else:
        made = apply_node(call.func.id, *operands, **attrs)
    for (name, *type), value in zip(results, made.results, strict=True):
        assert value.type == _type(*type), f"{line}: the type is {value.type}"
        values[name] = value


def _attribute(node: ast.expr, values: dict[str, Value]) -> object:
    return _operand(node, values) if isinstance(node, ast.Name) else ast.literal_eval(node)


def _operand(node: ast.expr, values: dict[str, Value]) -> Value:
    if isinstance(node, ast.Name):
        return values[re.sub(r"^_(?=\d)", "%", node.id)]
    return constant(ast.literal_eval(node))


def _body(
    header: str, rows: Iterator[str], values: dict[str, Value]
) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    params = []
    for name, label, *type in re.findall(rf"(%\d+) (\w+): {TYPE}", header):
        values[name] = make_input(label, _type(*type))
        params.append(values[name])
    for line in rows:
        if line.startswith("yield "):
            return tuple(params), tuple(values[name] for name in line[6:].split(", "))
        _define(line, rows, values)
    raise AssertionError("a body without yield")
