"""From a C syntax tree to lines: the only place that decides indentation and parentheses."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..ir.op_kinds import ADD, ATOM, COMPARE, MUL, SELECT, UNARY
from ..lowering.c import c_ast as c
from .line_breaking import WIDTH, folded

_INDENT = "    "
_LOGICAL = 40
_PRECEDENCE = {"*": MUL, "/": MUL, "+": ADD, "-": ADD, "&&": _LOGICAL, "||": 30}
_RIGHT = {MUL: UNARY, ADD: MUL, COMPARE: ADD, _LOGICAL: COMPARE, 30: _LOGICAL}


@dataclass(frozen=True)
class Printer:
    """`types`: spellings of types that differ from the tree; `width`: columns of a line without the indentation of a
    function's body."""

    types: Mapping[str, str] = field(default_factory=dict)
    width: int = WIDTH - len(_INDENT)

    # Expressions

    def expression(self, expr: c.Expr) -> str:
        """The text on one line."""
        return self._text(expr).replace("\0", " ")

    def _text(self, expr: c.Expr, need: int = SELECT) -> str:
        """The text, in parentheses where its precedence is below `need`; it is not cut at \0, which is a blank."""
        text, precedence = self._expression(expr)
        return f"({text})" if precedence < need else text

    def _expression(self, expr: c.Expr) -> tuple[str, int]:
        match expr:
            case c.Name(text):
                return text, ATOM
            case c.Literal(text):
                return text, UNARY if text.startswith("-") else ATOM
            case c.Element(array, index):
                return self._element(array, index), ATOM
            case c.Index():
                return self._expression(expr.sum)
            case c.Template(text, operands, precedence, needs):
                args = [self._text(o, need) for o, need in zip(operands, needs, strict=True)]
                return text.format(*args), precedence
            case c.Member(pointer, name):
                return f"{pointer}->{name}", ATOM
            case c.Call(function, arguments):
                return f"{function}({', '.join(map(self._text, arguments))})", ATOM
            case c.Unary("&", c.Element(array, index)):
                return f"&{self._element(array, index, is_first=True)}", UNARY
            case c.Unary(symbol, operand):
                return symbol + self._text(operand, ATOM), UNARY
            case c.Initializer(fields):
                values = ", ".join(f".{name}\0=\0{self._text(v)}" for name, v in fields)
                return f"{{{values}}}", ATOM
            case c.Cast(c_type, operand):
                return f"({self.types.get(c_type, c_type)}){self._text(operand, UNARY)}", UNARY
            case c.Increment(name):
                return f"{name}++", ATOM
            case c.Binary(symbol, left, right):
                precedence = _PRECEDENCE.get(symbol, COMPARE)
                first, second = (
                    self._text(left, precedence),
                    self._text(right, _RIGHT[precedence]),
                )
                # a product with a cast, as in an offset of type ptrdiff_t, stays on one line
                blank = "\0" if symbol == "*" and isinstance(left, c.Cast) else " "
                return f"{first}{blank}{symbol}{blank}{second}", precedence
            case c.Sum():
                return self._sum(expr), ADD
            case c.Conditional(test, then, otherwise):
                parts = (self._text(test, 30), self._text(then, 30), self._text(otherwise))
                return f"{parts[0]} ? {parts[1]} : {parts[2]}", SELECT

    def _element(self, array: c.Expr, index: c.Expr, is_first: bool = False) -> str:
        """`array[index]`; with the array `a + b`, `a[b + index]`. is_first: whether the element is written with `&` to
        say where an array begins."""
        index = index.sum if isinstance(index, c.Index) else index
        if isinstance(array, c.Binary) and array.symbol == "+":
            start, array = array.right, array.left
            if index == c.number(0):
                index = start
            elif isinstance(index, c.Sum):
                index = replace(index, terms=(start, *index.terms))
            else:
                index = c.Sum((start, index))
        inside = self._text(index)
        if isinstance(index, c.Binary) and index.symbol == "*" and not is_first:
            # beside `i * 10 + 1`; clang-tidy warns about a bare product, which widens an int
            inside += " + 0"
        return f"{self._text(array, ATOM)}[{inside}]"

    def _sum(self, total: c.Sum) -> str:
        *before, last = total.terms
        if total.less and before:  # in parentheses, as c.Sum says
            return self._sum(c.Sum((*before, c.Sum((last,), total.less))))
        first, *others = total.terms
        is_difference = isinstance(first, c.Sum) and bool(first.less)
        added = [f" + {self._text(t, MUL)}" for t in others]
        subtracted = [f" - {self._text(t, MUL)}" for t in total.less]
        return self._text(first, MUL if is_difference else ADD) + "".join([*added, *subtracted])

    # Statements

    def lines(self, statements: Iterable[c.Statement]) -> list[str]:
        out: list[str] = []
        for is_commented, some in itertools.groupby(
            statements, lambda s: isinstance(s, c.Declare) and bool(s.comment)
        ):
            texts = [(self._statement(s), s) for s in some]
            if is_commented:
                notes = [(lines[0], f"/* {s.comment} */") for lines, s in texts if isinstance(s, c.Declare)]
                out += self._with_comments(notes)
            else:
                out += [line for lines, _ in texts for line in lines]
        return out

    def _with_comments(self, notes: Sequence[tuple[str, str]]) -> list[str]:
        """Declarations with their comments in one column, or before them where a line would be too long."""
        beside = list(notes)
        while True:
            column = max((len(text) for text, _ in beside), default=0)
            too_long = [row for row in beside if column + 1 + len(row[1]) > self.width]
            if not too_long:
                break
            beside.remove(max(too_long, key=lambda row: len(row[0]) + len(row[1])))
        out: list[str] = []
        for text, note in notes:
            out += [f"{text:<{column}} {note}"] if (text, note) in beside else [note, text]
        return out

    def _inside(self, body: Sequence[c.Statement]) -> list[str]:
        return [_INDENT + line if line else "" for line in self._inner.lines(body)]

    @cached_property
    def _inner(self) -> Printer:
        return replace(self, width=max(self.width - len(_INDENT), 60))

    def _folded(self, text: str) -> list[str]:
        return folded(text, self.width)

    def _statement(self, statement: c.Statement) -> list[str]:
        match statement:
            case c.ExprStatement(expr):
                return self._folded(f"{self._text(expr)};")
            case c.Assign(target, value, op):
                return self._folded(f"{self._text(target)} {op} {self._text(value)};")
            case c.Declare():
                return self._declare(statement)
            case c.Array(c_type, name, size, first):
                return [f"{c_type} {name}[{size}]{f' = {{{first}}}' if first else ''};"]
            case c.Table():
                return self._table(statement)
            case c.StepTemplate(text, accumulators, x, index, need):
                operands = {f"acc{k}": a for k, a in enumerate(accumulators)} | {"x": x}
                operands |= {} if index is None else {"i": index}
                return self._folded(text.format(**{k: self._text(v, need) for k, v in operands.items()}))
            case c.For(blocks=(_, *_)):
                body = statement.body
                if statement.blocks_macro != "BLOCK":
                    body = next(s.body for s in body if isinstance(s, c.For))
                return [*self._folded(self._block_head(statement)), *self._inside(c.unbraced(body)), "}"]
            case c.For():
                macros = self._loop_macros(statement)
                return [*macros, self._head(statement), *self._inside(c.unbraced(statement.body)), "}"]
            case c.If(test, then, otherwise):
                other = ["} else {", *self._inside(otherwise)] if otherwise else []
                return [*self._folded(f"if ({self._text(test)}) {{"), *self._inside(then), *other, "}"]
            case c.Block(body):
                return ["{", *self._inside(body), "}"]
            case c.Comment():
                return self._comment(statement)
            case c.Heading(text):
                return [f"/* ---- {text} ---- */"]
            case c.Probe(id):
                return [f"AG_PROBE({id});"]
            case c.Return(value):
                return [f"return {self._text(value)};"]
            case c.Blank():
                return [""]

    def _declare(self, d: c.Declare) -> list[str]:
        if d.is_pointer:
            head = f"{d.c_type}const " if d.const else d.c_type
        else:
            head = f"const {d.c_type} " if d.const else f"{d.c_type} "
        equals = "\0=\0" if len(d.variables) > 1 else " = "
        values = [name if v is None else f"{name}{equals}{self._text(v)}" for name, v in d.variables]
        text = f"{head}{', '.join(values)};"
        return [text.replace("\0", " ")] if d.comment else self._folded(text)

    def _table(self, table: c.Table) -> list[str]:
        text = ", ".join(f".{k}\0=\0{v}" for k, v in table.fields)
        inside = folded(text, WIDTH - 14, "")
        return [
            f"static const {table.c_type} {table.name} = {{",
            *(_INDENT + line for line in inside),
            "};",
        ]

    @staticmethod
    def _loop_macros(loop: c.For) -> list[str]:
        """The macros of runtime/ag_loops.h before a loop."""
        macros = ["AG_IVDEP"] * loop.independent
        if loop.reduction is not None:
            macros = [f"AG_REDUCTION({loop.reduction.identifier} : {', '.join(loop.reduction.names)})"]
        return macros + ["AG_NOUNROLL"] * loop.rolled

    def _head(self, loop: c.For) -> str:
        v, start, stop = loop.variable, self._text(loop.start), self._text(loop.stop)
        next_ = {1: "++", -1: "--"}.get(loop.step, f" += {loop.step}")
        return (
            f"for ({loop.c_type} {v} = {start}; {v} {'<' if loop.step > 0 else '>='} {stop}; {v}{next_}) {{"
        )

    def _block_head(self, loop: c.For) -> str:
        """The macro of runtime/ag_blocks.h for a loop over blocks and the loop over the elements of one."""
        kind = "RELU_" if any(o.limit is not None for o in loop.blocks) else ""
        inner = loop if loop.blocks_macro == "BLOCK" else loop.body[0]
        assert isinstance(inner, c.For)
        element = [inner.variable, self._text(inner.stop)]
        around = [] if inner is loop else [loop.variable, self._text(loop.stop)]
        arguments = [*around, *element, *map(self._block_operand, loop.blocks)]
        return f"AG_{kind}{loop.blocks_macro}({', '.join(arguments)}) {{"

    def _block_operand(self, operand: c.BlockOperand) -> str:
        kind = "replace" if operand.replaces else "write" if operand.is_written else "read"
        kind = "update" if operand.is_read and operand.is_written else kind
        given = [operand.name, self._text(operand.pointer)]
        given += [] if operand.stride is None else [self._text(operand.stride)]
        if operand.limit is not None:
            kind += "_relu" if operand.limit == c.Literal("INFINITY") else "_limited"
            given += [] if operand.limit == c.Literal("INFINITY") else [self._text(operand.limit)]
        return f"{kind}({', '.join(given)})".replace(" ", "\0")  # on one line

    def _comment(self, comment: c.Comment) -> list[str]:
        """A line of the text begins a line of the comment; lines after a cut are indented."""
        indent = " " * (max(len(comment.step), 2) + 1) if comment.step else ""
        room = self.width - len(indent) - len("/*  */")
        lines = [part for text in comment.text.split("\n") for part in folded(text, room)]
        lines = [
            f"{comment.step:<2} {lines[0]}" if comment.step else lines[0],
            *(indent + x for x in lines[1:]),
        ]
        return [*(f"{' *' if k else '/*'} {line}" for k, line in enumerate(lines[:-1])),
                f"{' *' if len(lines) > 1 else '/*'} {lines[-1]} */"]  # fmt: skip


PRINTER = Printer()
