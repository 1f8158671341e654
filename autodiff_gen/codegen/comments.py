"""The comment of a kernel call: its formula with operands, transposes and shapes."""

from __future__ import annotations

import math

from ..ir.kernel_call import Epilogue, KernelCall, Matrix, Scalar
from ..ir.node import Node
from ..ir.op_forms import AddedToMemory, WithEpilogue
from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from ..lowering.c.c_syntax import shown
from .c_printer import PRINTER
from .entry_names import Names
from .formulas import plain
from .view_text import viewed, windows_of


def call_comment(names: Names, node: Node, call: KernelCall) -> str:
    """`y[4,3] = x[4,8] . w[3,8]'`, or `y[4,3] = op(x[4,8], ...)`. A call that adds to its result has `+=` or `-=`; if
    it also scales the old result, the comment has both factors: `y[4,3] = 0.9 * itself + 0.1 * op(...)`."""
    each = ""
    if call.product is not None:
        a, b = call.product
        what = f"{_factor(names, node, a)} . {_factor(names, node, b)}"
        shape = (a.shape[0], b.shape[1])
        targets = f"{names.bare(names.place(node.results[0]))}{shown(shape)}"
        if call.over:
            each = f"for each of {shown(tuple(node.results[0].type.shape[i] for i in call.over))}: "
    else:
        what = _applied(names, node)
        targets = ", ".join(f"{names.bare(names.place(r))}{shown(r.type.shape)}" for r in node.results)
    alpha, beta = call.factors.get("alpha", 1.0), call.factors.get("beta", 0.0)
    if isinstance(alpha, Scalar):
        factor = PRINTER.expression(names.scalar(node.operands[alpha.index]))
        sign = "-" if alpha.negate else "+"
    else:
        factor, sign = c_syntax.float_literal(abs(alpha)), "-" if alpha < 0 else "+"
    if factor.startswith("-"):
        factor, sign = factor[1:], "+" if sign == "-" else "-"
    scaled = what if factor == "1.0f" else f"{plain(factor)} * {what}"
    if call.epilogue is not None:
        scaled = _finished(names, node, call.epilogue, scaled)
    if beta == 1.0:
        return f"{each}{targets} {sign}= {scaled}"
    if beta == 0.0:
        return f"{each}{targets} = {'-' if sign == '-' else ''}{scaled}"
    factor = plain(PRINTER.expression(_beta(names, node, beta)))
    return f"{each}{targets} = {factor} * itself {sign} {scaled}"


def _finished(names: Names, node: Node, epilogue: Epilogue, what: str) -> str:
    """`relu(what * scale + bias + residual)`."""
    said = {k: names.bare(names.place(node.operands[role.index])) for k, role in epilogue.pointers.items()}
    scale = f" * {said.pop('scale')}" if "scale" in said else ""
    text = f"{what}{scale}{''.join(f' + {name}' for name in said.values())}"
    if not node.attrs["activation"]:
        return text
    limits = [epilogue.low, epilogue.high] if math.inf > epilogue.high else []
    numbers = "".join(f", {plain(c_syntax.float_literal(limit))}" for limit in limits)
    return f"{node.attrs['activation']}({text}{numbers})"


def _beta(names: Names, node: Node, beta: float | Scalar) -> c.Expr:
    if isinstance(beta, Scalar):
        return names.scalar(node.operands[beta.index])
    return c.Literal(c_syntax.float_literal(beta))


def _factor(names: Names, node: Node, factor: Matrix) -> str:
    v = node.operands[factor.operand]
    name = windows_of(v, names.bare(names.place(v)))
    return name + shown(factor.stored) + ("'" if factor.transposed else "")


def _applied(names: Names, node: Node) -> str:
    """The op of a call, applied to its operands."""
    name, last = node.op.name, len(node.operands)
    match node.op.form:
        case AddedToMemory(of):
            name, last = of, last - 2
        case WithEpilogue(of):
            name, last = of, last - len(node.attrs["epilogue"])
    terms = (f"{viewed(v, names.bare(names.place(v)))}{shown(v.type.shape)}" for v in node.operands[:last])
    return f"{name}({', '.join(terms)})" if name else next(terms)
