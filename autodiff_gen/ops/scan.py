"""The op record of scan: a step that is repeated along the time axis, as one node whose region is the step."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.node import Op, Value, register
from ..ir.op_kinds import Attrs, Scan
from ..ir.types import Type
from .scan_vjp import scan_vjp


def _never(*_: object, **__: object) -> Type:
    raise AssertionError("scan is built by make_scan and computed by the interpreter")


def _vjp(
    dys: Sequence[Value | None],
    inputs: Sequence[Value],
    outs: Sequence[Value],
    attrs: Attrs,
    wanted: Sequence[bool],
) -> list[Value | None]:
    return scan_vjp(outs[0].node, dys, wanted)


SCAN = register(Op("scan", infer=_never, ref=_never, vjp=_vjp, lower=Scan()))
