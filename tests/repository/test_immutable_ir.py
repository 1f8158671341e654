"""Nodes, values, graphs and states do not change: outside `ir/` no module writes to their attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from small_graphs import float_state

import autodiff_gen as ag
from autodiff_gen.ir.graph import Graph

PACKAGE = Path(__file__).resolve().parents[2] / "autodiff_gen"

# Of Node and Value; Region, Graph and State are frozen dataclasses.
ATTRIBUTES = {"attrs", "hint", "index", "node", "op", "operands", "regions", "results", "serial", "type"}
WRITERS = {"update", "setdefault", "pop", "popitem", "clear", "__setitem__"}  # of node.attrs

# file: the writes that stay, and why
EXEMPT = {
    "nn/parameter.py": "a parameter is listed before the network that reads it is called; names follow the call",
}


def writes(source: str) -> Iterator[int]:
    """The lines that assign to such an attribute of anything but `self`, or to node.attrs."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call):
            targets = _written_by_call(node)
        else:
            continue
        for target in (part for t in targets for part in ast.walk(t) if isinstance(part, ast.expr)):
            if isinstance(target, ast.Attribute | ast.Subscript) and not isinstance(target.ctx, ast.Load):
                if _is_part_of_ir(target):
                    yield target.lineno
            elif isinstance(node, ast.Call) and target in targets:
                yield node.lineno


def _is_part_of_ir(target: ast.Attribute | ast.Subscript) -> bool:
    if isinstance(target, ast.Subscript):
        return isinstance(target.value, ast.Attribute) and target.value.attr == "attrs"
    return target.attr in ATTRIBUTES and not (
        isinstance(target.value, ast.Name) and target.value.id in ("self", "cls")
    )


def _written_by_call(call: ast.Call) -> list[ast.expr]:
    """`node.attrs.update(...)`, `setattr(node, "op", ...)`, `object.__setattr__(node, "op", ...)`."""
    f = call.func
    if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Attribute) and f.value.attr == "attrs":
        return [f] if f.attr in WRITERS else []
    if getattr(f, "id", getattr(f, "attr", "")) in ("setattr", "__setattr__") and len(call.args) == 3:
        name = call.args[1]
        return [name] if isinstance(name, ast.Constant) and name.value in ATTRIBUTES else []
    return []


def test_no_module_outside_ir_writes_to_a_graph() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        lines = [] if file.startswith(("ir/", "_data/")) else sorted(set(writes(path.read_text())))
        if lines:
            found[file] = lines
    assert found.keys() == EXEMPT.keys(), (
        f"writes to nodes, values, graphs or states, by file and line: {found}"
    )


@pytest.mark.parametrize(
    "source",
    [
        "node.op = op",
        "v.node.operands = ()",
        'node.attrs["axes"] = (0,)',
        'v.node.attrs["axes"] += 1',
        'del node.attrs["axes"]',
        "node.attrs.update(axes=1)",
        'made.attrs.setdefault("classes", 3)',
        "a, made.node.serial = 1, 2",
        'setattr(node, "results", ())',
        'object.__setattr__(node, "op", None)',
    ],
)
def test_writes_are_found(source: str) -> None:
    assert list(writes(source))


@pytest.mark.parametrize(
    "source",
    [
        "self.op = op",
        "attrs = dict(node.attrs)",
        'attrs["axes"] = node.attrs["axes"]',
        'counts[node.op] = node.attrs.get("axes")',
        "found.append(node.op)",
        'setattr(Value, "relu", relu)',
    ],
)
def test_reads_are_not(source: str) -> None:
    assert not list(writes(source))


def test_states_and_graphs_are_frozen() -> None:
    state, w = float_state("w", 4)
    graph = Graph("g", (), {"y": w})
    for thing, name in ((state, "trainable"), (state, "name"), (graph, "outputs")):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, name, None)
    state.edit(name="v", trainable=False)
    assert (state.name, state.trainable) == ("v", False)
    for change in ({"type": w.type}, {"fixed": True}):
        with pytest.raises(AssertionError):
            state.edit(**change)
    x = ag.Param("x", [1.0])
    loss = (x * x).sum()
    ag.Model([], [], {"y": x}, loss, ag.optim.SGD(lr=0.1))
    with pytest.raises(AssertionError):
        x.node.attrs["state"].edit(name="z")
