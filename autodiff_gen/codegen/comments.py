"""What a kernel call computes, as mathematics: operands, transposes and shapes are those of the call."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..ir.kernel_call import Epilogue, KernelCall, Operand, Scalar
from ..ir.node import Node
from ..ir.op_kinds import Call
from ..ir.types import Size
from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from ..lowering.c.c_syntax import shown
from .c_printer import PRINTER
from .entry_names import Names
from .formulas import plain, viewed


@dataclass(frozen=True)
class Factor:
    """One side of a product: the operand, its rows and columns as they are stored, and whether it is transposed."""

    index: int
    shape: tuple[Size, Size]
    transposed: bool = False

    @property
    def used(self) -> tuple[Size, Size]:
        """Rows and columns as the product takes them."""
        return self.shape[::-1] if self.transposed else self.shape


def product(call: KernelCall) -> tuple[Factor, Factor] | None:
    """Both sides of a call that is a product of matrices or vectors; None for other calls."""
    s, kernel = call.sizes, call.kernel
    if kernel.startswith("gemm_"):
        ta, tb = (letter == "t" for letter in kernel[5:7])
        left = (s["k"], s["m"]) if ta else (s["m"], s["k"])
        right = (s["n"], s["k"]) if tb else (s["k"], s["n"])
        return Factor(_operand(call, "a"), left, ta), Factor(_operand(call, "b"), right, tb)
    if kernel == "ger_f32":
        return Factor(_operand(call, "x"), (s["m"], 1)), Factor(_operand(call, "y"), (1, s["n"]))
    if kernel in ("gemv_f32", "gemv_t_f32"):
        matrix, transposed = (s["m"], s["n"]), kernel == "gemv_t_f32"
        of_x = s["m"] if transposed else s["n"]
        if _operand(call, "a") < _operand(call, "x"):
            return Factor(_operand(call, "a"), matrix, transposed), Factor(_operand(call, "x"), (of_x, 1))
        return Factor(_operand(call, "x"), (1, of_x)), Factor(_operand(call, "a"), matrix, not transposed)
    return None


def _operand(call: KernelCall, parameter: str) -> int:
    role = call.pointers[parameter]
    assert isinstance(role, Operand)
    return role.index


def call_comment(names: Names, node: Node, call: KernelCall) -> str:
    """`y[4,3] = x[4,8] . w[3,8]'`, or `y[4,3] = op(x[4,8], ...)`; what is added to memory with its factors."""
    sides = product(call)
    each = ""
    if sides is not None:
        what = f"{_factor(names, node, sides[0])} . {_factor(names, node, sides[1])}"
        shape = (sides[0].used[0], sides[1].used[1])
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
    kept = plain(PRINTER.expression(_beta(names, node, beta)))
    return f"{each}{targets} = {kept} * itself {sign} {scaled}"


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


def _factor(names: Names, node: Node, side: Factor) -> str:
    name = names.bare(names.place(node.operands[side.index]))
    return f"{name}{shown(side.shape)}{chr(39) if side.transposed else ''}"


def _applied(names: Names, node: Node) -> str:
    """The op of a call, applied to its operands."""
    lower = node.op.lower
    assert isinstance(lower, Call), node.op.name
    last = len(node.operands) if lower.into is None else lower.into
    if "epilogue" in node.attrs:
        last -= len(node.attrs["epilogue"])
    terms = []
    for i, v in enumerate(node.operands[:last]):
        if i in lower.scalars:
            terms.append(plain(PRINTER.expression(names.scalar(v))))
        else:
            terms.append(f"{viewed(v, names.bare(names.place(v)))}{shown(v.type.shape)}")
    name = lower.term if lower.into is not None or "epilogue" in node.attrs else node.op.name
    return f"{name}({', '.join(terms)})" if name else terms[0]
