"""Check the Python text of an imported network before it is executed: its syntax tree is the tree that the importer
meant, each literal in it has the meant value, and it calls only functions that the importer knows."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from .problems import Rejected
from .text import placeholders

_STATEMENTS = (
    ast.Module,
    ast.ClassDef,
    ast.FunctionDef,
    ast.arguments,
    ast.arg,
    ast.Assign,
    ast.Expr,
    ast.For,
)
_EXPRESSIONS = (
    ast.Return,
    ast.Call,
    ast.keyword,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.Name,
    ast.Starred,
)
_VALUES = (ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.BinOp, ast.UnaryOp, ast.Compare, ast.expr_context)
ALLOWED = (*_STATEMENTS, *_EXPRESSIONS, *_VALUES, ast.operator, ast.unaryop, ast.cmpop)
Made = TypeVar("Made")
PACKAGES = {"F", "ag", "init", "nn", "np", "optim"}
BUILTINS = {"float", "getattr", "setattr", "super"}


def checked(name: str, make: Callable[[], tuple[str, Made]]) -> tuple[str, Made, ast.Module]:
    """The results of `make`, a text and an object that belongs to it, and the syntax tree of the text. name: the name
    of the imported file. Raises Rejected for a text with another tree than meant."""
    with placeholders() as marks:
        meant, made = make()
    try:
        text = marks.filled(meant)
        tree = ast.parse(text)
        _Check(text.split("\n"), meant.split("\n"), marks.values, tree).statements(tree.body)
    except (SyntaxError, ValueError, KeyError, RecursionError):
        raise Rejected(
            f"{name} cannot be imported: it has names or values that Python cannot write; rename them, and "
            "export it anew"
        ) from None
    return text, made, tree


class _Other(SyntaxError):
    """A tree that differs from the meant one."""


class _Check:
    """Compare the statements of a text with the meant statements on the same lines, which have placeholders."""

    def __init__(
        self, lines: Sequence[str], meant: Sequence[str], values: Mapping[str, Any], tree: ast.Module
    ) -> None:
        self.lines, self.meant, self.values = lines, meant, values
        self.classes = {s.name for s in tree.body if isinstance(s, ast.ClassDef)}
        self.known: set[tuple[str, str]] = set()
        if len(lines) != len(meant):
            raise _Other

    def statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            inner = getattr(statement, "body", None)
            if inner is None:
                self._statement(statement)
                continue
            self._same(statement, _parsed(self.meant[statement.lineno - 1 : inner[0].lineno - 1], " pass"))
            self.statements(inner)

    def _statement(self, statement: ast.stmt) -> None:
        part = slice(statement.lineno - 1, statement.end_lineno)
        pair = "\n".join(self.lines[part]), "\n".join(self.meant[part])
        if pair in self.known:
            return
        self._same(statement, _parsed(self.meant[part]))
        self.known.add(pair)

    def _same(self, tree: ast.AST, meant: ast.AST) -> None:
        stack: list[tuple[Any, Any]] = [(tree, meant)]
        while stack:
            one, other = stack.pop()
            if type(other) is ast.Name and other.id in self.values:
                if not _is_literal(one, self.values[other.id]):
                    raise _Other
                continue
            if type(one) is not type(other) or not isinstance(one, ALLOWED):
                raise _Other
            if type(one) is ast.Call and not _is_known(one.func, self.classes):
                raise _Other
            for name in one._fields:
                part, same = getattr(one, name), getattr(other, name)
                if name == "body":  # `statements` compares it
                    continue
                if isinstance(part, list):
                    if len(part) != len(same):
                        raise _Other
                    stack += zip(part, same, strict=True)
                elif isinstance(part, ast.AST):
                    stack.append((part, same))
                elif part != same or type(part) is not type(same):
                    raise _Other


def _parsed(lines: Sequence[str], end: str = "") -> ast.stmt:
    """The only statement of some lines; the first line may be indented."""
    (statement,) = ast.parse("\n".join(lines).strip() + end).body
    return statement


def _is_known(called: ast.expr, classes: set[str]) -> bool:
    """Whether a network may call this: one of its classes, a function of ours, a module in it, or a method of one."""
    if isinstance(called, ast.Name):
        return called.id in classes | BUILTINS | {"net"}
    if isinstance(called, ast.Attribute) and called.attr.startswith("_"):
        inside = called.value
        return called.attr == "__init__" and isinstance(inside, ast.Call) and _is_known(inside.func, set())
    if isinstance(called, ast.Call):  # a loss: nn.MSELoss()(output, target)
        return _is_known(called.func, classes)
    while isinstance(called, ast.Attribute | ast.Subscript):
        if isinstance(called, ast.Attribute) and called.attr.startswith("__"):
            return False
        called = called.value
    return isinstance(called, ast.Name) and called.id in PACKAGES | {"self", "net", "module"}


def _is_literal(node: Any, value: Any) -> bool:
    """Whether an expression is this value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return isinstance(node, ast.Call) and _is_literal_list(node.args[0], value.tolist())
    if isinstance(value, tuple):
        if not isinstance(node, ast.Tuple) or len(node.elts) != len(value):
            return False
        return all(map(_is_literal, node.elts, value))
    if isinstance(value, float) and not np.isfinite(value):
        return isinstance(node, ast.Call) and _is_literal(node.args[0], str(value))
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        return type(value) in (int, float) and repr(value) == f"-{node.operand.value!r}"
    return isinstance(node, ast.Constant) and type(node.value) is type(value) and node.value == value


def _is_literal_list(node: Any, value: Any) -> bool:
    if not isinstance(value, list):
        return _is_literal(node, value)
    if not isinstance(node, ast.List) or len(node.elts) != len(value):
        return False
    return all(map(_is_literal_list, node.elts, value))
