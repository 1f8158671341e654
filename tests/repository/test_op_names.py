"""No module outside ops/ decides by the name of an op, but by traits in the op's record (ir/node.py)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from autodiff_gen.kernels.contract import CONTRACT

PACKAGE = Path(__file__).resolve().parents[2] / "autodiff_gen"

# file: why its comparisons stay
EXEMPT = {
    "ir/node.py": "the registry maps names to records",
}

LOOKUPS = (
    "get",
    "pop",
    "setdefault",
    "index",
    "count",
    "startswith",
    "endswith",
    "removeprefix",
    "removesuffix",
)


class Names:
    """Where a module compares the name of an op or looks something up by it.

    A name is `<x>.op.name` or `op.name`, the record OPS["..."], a variable that was assigned one, or the parameter of a
    function of the module that is called with one.
    """

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.functions = {f.name: f for f in ast.walk(self.tree) if isinstance(f, ast.FunctionDef)}
        self.variables: dict[ast.AST, set[str]] = {f: set() for f in [self.tree, *self.functions.values()]}
        while self._spread():
            pass

    def _spread(self) -> bool:
        """Note variables and parameters that hold names; whether there were new ones."""
        before = sum(map(len, self.variables.values()))
        for scope, known in self.variables.items():
            for node in _inside(scope):
                if isinstance(node, ast.Assign):
                    pairs = [p for target in node.targets for p in _pairs(target, node.value)]
                elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                    pairs = _pairs(node.target, node.value)
                elif isinstance(node, ast.For | ast.comprehension):
                    pairs = [(node.target, node.iter)]
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    self._into_parameters(node, known)
                    continue
                else:
                    continue
                known |= {t.id for t, v in pairs if isinstance(t, ast.Name) and self.is_name(v, known)}
        return sum(map(len, self.variables.values())) > before

    def _into_parameters(self, call: ast.Call, known: set[str]) -> None:
        called = self.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if called is not None:
            given = zip(called.args.args, call.args, strict=False)
            self.variables[called] |= {p.arg for p, v in given if self.is_name(v, known)}

    def is_name(self, node: ast.AST, known: set[str]) -> bool:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "OPS":
            return isinstance(node.slice, ast.Constant)
        if isinstance(node, ast.Attribute) and node.attr == "name":
            return getattr(node.value, "attr", getattr(node.value, "id", "")) == "op"
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.BoolOp):
            parts = node.values if isinstance(node, ast.BoolOp) else node.elts
            return any(self.is_name(part, known) for part in parts)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self.is_name(node.elt, known)
        if isinstance(node, ast.IfExp):
            return self.is_name(node.body, known) or self.is_name(node.orelse, known)
        return isinstance(node, ast.Name) and node.id in known

    def decisions(self) -> Iterator[int]:
        """The lines that decide by a name."""
        for scope, known in self.variables.items():
            for node in _inside(scope):
                if any(self.is_name(part, known) for part in _compared(node)):
                    yield node.lineno  # type: ignore[attr-defined]


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, with the functions inside; of a module, without its functions."""
    if not isinstance(scope, ast.Module):
        yield from ast.walk(scope)
        return
    pending: list[ast.AST] = [scope]
    while pending:
        node = pending.pop()
        yield node
        pending += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.FunctionDef)]


def _pairs(target: ast.AST, value: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _compared(node: ast.AST) -> list[ast.AST]:
    """The operands of a node that compares or looks up."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Subscript):
        return [] if isinstance(node.value, ast.Name) and node.value.id == "OPS" else [node.slice]
    if isinstance(node, ast.Match):
        return [node.subject]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOKUPS:
        return [node.func.value, *node.args]
    return []


def decisions(source: str) -> list[int]:
    return sorted(set(Names(source).decisions()))


def test_no_module_outside_ops_decides_by_the_name_of_an_op() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        lines = [] if file.startswith(("ops/", "_data/")) else decisions(path.read_text(encoding="utf-8"))
        if lines:
            found[file] = lines
    assert found.keys() == EXEMPT.keys(), f"comparisons with the name of an op, by file and line: {found}"


def kernels(source: str) -> list[str]:
    """The names of kernels, and their beginnings, with which a module compares something."""
    compared = [part for node in ast.walk(ast.parse(source)) for part in _compared(node)]
    words = [n.value for part in compared for n in ast.walk(part) if isinstance(n, ast.Constant)]
    return [w for w in words if isinstance(w, str) and len(w) > 3 and any(k.startswith(w) for k in CONTRACT)]


def test_no_pass_and_no_code_generation_decides_by_the_name_of_a_kernel() -> None:
    """They read fields of a call (ir/kernel_call.py), or rows of a table."""
    paths = [p for folder in ("passes", "lowering", "codegen") for p in (PACKAGE / folder).rglob("*.py")]
    assert not {p.name: names for p in paths if (names := kernels(p.read_text(encoding="utf-8")))}
    assert kernels('kernel.startswith("gemm_")') == ["gemm_"] and kernels('k in ("ger_f32",)') == ["ger_f32"]


@pytest.mark.parametrize(
    "source",
    [
        'node.op.name == "add"',
        'v.node.op.name in ("add", "sub")',
        'v.node.op is OPS["add"]',
        'op = node.op\nop.name != "add"',
        "RULES[node.op.name](node)",
        "RULES.get(node.op.name)",
        'node.op.name.endswith("_with_index")',
        'match node.op.name:\n    case "add":\n        pass',
        'name = node.op.name\nname == "add"',
        "v, name = node.results[0], node.op.name\nif name in RULES: pass",
        '(name := node.op.name) and name == "add"',
        'def f(name):\n    return name == "add"\nf(node.op.name)',
        '[name for name in [n.op.name for n in nodes] if name == "add"]',
        '{n.op.name for n in nodes} == {"add"}',
        'def f(x):\n    name = x.op.name if x else ""\n    return lambda: name == "add"',
    ],
)
def test_decisions_are_found(source: str) -> None:
    assert decisions(source)


@pytest.mark.parametrize(
    "source",
    [
        "apply(node.op.name, x)",
        "OPS[node.op.name]",
        "node.op is CONST",
        'f"{node.op.name} is rejected"',
        "sorted(ops, key=lambda op: op.name)",
        'state.name == "w"',
        'def f(x):\n    name = x.op.name\n    return name\ndef g(name):\n    return name == "w"',
    ],
)
def test_names_may_be_shown_and_nodes_built_by_them(source: str) -> None:
    assert not decisions(source)
