"""Expressions of generated C that ops compute, from their records."""

from __future__ import annotations

from typing import Any

import autodiff_gen.ops  # noqa: F401  # fills the registry
from autodiff_gen.ir.node import OPS
from autodiff_gen.ir.op_kinds import Reduce
from autodiff_gen.ir.types import DType, f32
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.c.op_template import of_op


def computed(op: str, *operands: c.Expr, dtype: DType = f32, **attrs: Any) -> Any:
    """The result of an elementwise op."""
    return of_op(OPS[op], attrs, dtype)(*operands)


def reduced(op: str, variable: c.Expr, x: c.Expr, need: int = 70) -> c.StepTemplate:
    """The statement by which a reduction takes one more element."""
    lower = OPS[op].lower
    assert isinstance(lower, Reduce)
    return c.StepTemplate(lower.step, (variable,), x, None, need, identifier=lower.identifier)
