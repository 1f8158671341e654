"""Conditions of a kernel table: comparisons of call attributes, such as "n % 4 == 0" or "4 <= k < 64", and core
features, such as "fpu64" or "not mve"; and formulas, such as "4 * kh * kw * c"."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import KernelError, listed, quoted

Number = int | float
_LONGEST = 300  # characters of an expression, which is parsed and traversed recursively

_ARITHMETIC: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_C_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_C_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "({} + {})",
    ast.Sub: "({} - {})",
    ast.Mult: "({} * {})",
    ast.Mod: "compare_floor_mod({}, {})",
    ast.FloorDiv: "compare_floor_div({}, {})",
}


@dataclass(frozen=True)
class Condition:
    """A parsed condition; call it with the call attributes (`facts`). It is False if an attribute in it is missing.
    feature: the condition is that the core has this feature, which is an attribute of that name with the value 1; with
    `absent`, that the core lacks it."""

    text: str
    names: frozenset[str]
    _tree: ast.Compare = field(repr=False, compare=False)
    feature: str | None = None
    absent: bool = False

    @classmethod
    def parse(cls, text: str, facts: Sequence[str], where: str, features: Collection[str] = ()) -> Condition:
        """`facts`: the names that a comparison may contain; `features`: the names that are conditions by themselves.
        Raises KernelError, whose message starts with `where`."""
        _check_length(text, where)
        word = text.strip().removeprefix("not ")
        if word in features:
            tree = ast.parse(f"{word} == 1", mode="eval").body
            assert isinstance(tree, ast.Compare)
            return cls(text, frozenset([word]), tree, word, word != text.strip())
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise KernelError(f'{where}: {quoted(text)} is not a comparison such as "n % 4 == 0"') from None
        if not isinstance(tree, ast.Compare) or any(type(op) not in _COMPARE for op in tree.ops):
            raise KernelError(f'{where}: {quoted(text)} is not a comparison such as "n % 4 == 0"')
        names = set()
        for side in (tree.left, *tree.comparators):
            names |= _names(side, text, where)
        for name in sorted(names):
            if name not in facts:
                raise KernelError(
                    f"{where}: {quoted(text)} names {quoted(name)}; this kernel's call attributes are {listed(facts)}"
                )
        if not names:
            raise KernelError(f"{where}: {quoted(text)} compares no call attribute ({listed(facts)})")
        return cls(text, frozenset(names), tree)

    def __call__(self, facts: Mapping[str, Number]) -> bool:
        if self.feature is not None:
            return (self.feature in facts) != self.absent
        if not self.names <= facts.keys():
            return False
        values = [_value(side, facts) for side in (self._tree.left, *self._tree.comparators)]
        return all(
            _COMPARE[type(op)](a, b) for op, a, b in zip(self._tree.ops, values, values[1:], strict=False)
        )

    def why_not(self, facts: Mapping[str, Number]) -> str:
        """The reason why the condition is false, for reports."""
        if self.feature is not None:
            return f"the core has {'' if self.absent else 'no '}{self.feature}"
        for name in sorted(self.names):
            if name not in facts:
                return f"{self.text} needs {name}, which is known at run time only"
        values = ", ".join(f"{name}={facts[name]:.9g}" for name in sorted(self.names))
        return f"{self.text} fails for {values}"

    def c_text(self, names: Mapping[str, str]) -> str:
        """The condition as a C expression; `names` maps each call attribute to its C expression."""
        sides = [_c_text(side, names) for side in (self._tree.left, *self._tree.comparators)]
        pairs = zip(self._tree.ops, sides, sides[1:], strict=False)
        return " && ".join(f"{a} {_C_COMPARE[type(op)]} {b}" for op, a, b in pairs)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Formula:
    """A number computed from call attributes, such as "4 * kh * kw * c"."""

    text: str
    _tree: ast.expr = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, facts: Sequence[str], where: str) -> Formula:
        """`facts`: the names that it may contain. Raises KernelError, whose message starts with `where`."""
        _check_length(text, where)
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise KernelError(f'{where}: {quoted(text)} is not a formula such as "4 * kh * kw * c"') from None
        for name in sorted(_names(tree, text, where)):
            if name not in facts:
                raise KernelError(
                    f"{where}: {quoted(text)} names {quoted(name)}; this kernel's call attributes are {listed(facts)}"
                )
        return cls(text, tree)

    def __call__(self, facts: Mapping[str, Number]) -> Number:
        return _value(self._tree, facts)

    def c_text(self, names: Mapping[str, str]) -> str:
        """The formula as a C expression; `names` maps each call attribute to its C expression."""
        return _c_text(self._tree, names)


def _check_length(text: str, where: str) -> None:
    if len(text) > _LONGEST:
        raise KernelError(f"{where}: {quoted(text)} has more than {_LONGEST} characters")


def _names(node: ast.expr, text: str, where: str) -> set[str]:
    """The names in an arithmetic expression. Raises KernelError unless it consists of names, numbers, + - *, and // and
    % by positive constants."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Constant(value=value) if type(value) in (int, float):
            return set()
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _names(operand, text, where)
        case ast.BinOp(left=left, op=ast.Mod() | ast.FloorDiv(), right=right):
            if not (isinstance(right, ast.Constant) and type(right.value) is int and right.value > 0):
                raise KernelError(
                    f"{where}: {quoted(text)} divides by something that is not a positive constant"
                )
            return _names(left, text, where)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            return _names(left, text, where) | _names(right, text, where)
    raise KernelError(f"{where}: {quoted(text)}: only numbers, names and + - * // % are allowed")


def _value(node: ast.expr, facts: Mapping[str, Number]) -> Number:
    match node:
        case ast.Name(id=name):
            return facts[name]
        case ast.Constant(value=value) if isinstance(value, (int, float)):
            return value
        case ast.UnaryOp(operand=operand):
            return -_value(operand, facts)
        case ast.BinOp(left=left, op=op, right=right):
            return _ARITHMETIC[type(op)](_value(left, facts), _value(right, facts))
    raise AssertionError(ast.dump(node))  # parse() has rejected all else


def _c_text(node: ast.expr, names: Mapping[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return names[name]
        case ast.Constant(value=int(value)):
            return str(value)
        case ast.Constant(value=float(value)):
            return f"{value!r}f"
        case ast.UnaryOp(operand=operand):
            return f"(-{_c_text(operand, names)})"
        case ast.BinOp(left=left, op=op, right=right):
            return _C_ARITHMETIC[type(op)].format(_c_text(left, names), _c_text(right, names))
    raise AssertionError(ast.dump(node))
