"""The op record of scan: a step that is repeated along the time axis, as one node whose region is the step."""

from __future__ import annotations

from ...ir.node import OptionalValues, Values, Wanted, define
from ...ir.op_kinds import Attrs, Scan
from ..support import never
from .scan_vjp import scan_vjp


def _vjp(dys: OptionalValues, inputs: Values, outs: Values, attrs: Attrs, wanted: Wanted) -> OptionalValues:
    return scan_vjp(outs[0].node, dys, wanted)


SCAN = define("scan", infer=never, ref=never, vjp=_vjp, lower=Scan())
