"""A call of a kernel as C, and its sizes in words."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.kernel_call import KernelCall
from ..kernels.contract import CONTRACT
from ..lowering.c import c_ast as c
from ..lowering.c.c_syntax import extent

_GEOMETRY = (
    "h",
    "w",
    "c",
    "oh",
    "ow",
    "o",
    "kh",
    "kw",
    "groups",
)  # fields of a shape that headers and reports show


def statement(call: KernelCall, symbol: str, values: Mapping[str, c.Expr]) -> c.ExprStatement:
    """The C statement; `values` by parameter name. A call without an epilogue or without scratch memory passes
    NULL for it."""
    params = CONTRACT[call.kernel].params
    given = {p.name: c.Name("NULL") for p in params if p.is_epilogue or p.is_scratch} | dict(values)
    read_only = tuple(k for k, p in enumerate(params) if p.ctype.startswith("const "))
    return c.ExprStatement(c.Call(symbol, tuple(given[p.name] for p in params), read_only))


def sizes(call: KernelCall) -> str:
    """The sizes, for headers and reports; leading dimensions (`ld...`) are left out."""
    shown = {k: extent(v) for k, v in call.sizes.items() if not k.startswith("ld")}
    shown |= {k: str(v) for k, v in call.shape.items() if k in _GEOMETRY}
    return " ".join(f"{k}={v}" for k, v in shown.items())
