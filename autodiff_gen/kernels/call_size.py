"""The numbers of results and terms of a call, which a board's [cost.kernels] multiplies by costs. Stdlib only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..targets.cost_table import KernelCost
from .predicates import Number


@dataclass(frozen=True)
class CallSize:
    """rows * columns results, each the sum of `terms` products; tiles cover the columns."""

    rows: Number
    columns: Number
    terms: Number

    def cost(self, kernel: KernelCost) -> float:
        """The cost of a call of this size."""
        row = kernel.total((int(self.columns),), int(self.terms)) - kernel.call
        return kernel.call + self.rows * row


Facts = Mapping[str, Number]


def _conv2d(f: Facts) -> CallSize:
    return CallSize(f["oh"] * f["ow"] * f["groups"], f["o"] // f["groups"], f["kh"] * f["kw"] * _inputs(f))


def _conv2d_dx(f: Facts) -> CallSize:
    return CallSize(f["h"] * f["w"] * f["groups"], _inputs(f), f["kh"] * f["kw"] * f["o"] // f["groups"])


def _conv2d_dw(f: Facts) -> CallSize:
    return CallSize(f["o"] * f["kh"], f["kw"] * _inputs(f), f["oh"] * f["ow"])


def _conv2d_pool(f: Facts) -> CallSize:
    return CallSize(f["ph"] * f["pw"] * f["pool_h"] * f["pool_w"], f["o"], f["kh"] * f["kw"] * f["c"])


def _inputs(f: Facts) -> Number:
    """The input channels of a group."""
    return f["c"] // f["groups"]


_SIZES: dict[str, Callable[[Facts], CallSize]] = {
    "conv2d_f32": _conv2d,
    "conv2d_dx_f32": _conv2d_dx,
    "conv2d_dw_f32": _conv2d_dw,
    "conv2d_pool_f32": _conv2d_pool,
}


def call_size(kernel: str, facts: Facts) -> CallSize | None:
    """The size of a call of the contract's `kernel` for one image; None where it is not known."""
    size = _SIZES.get(kernel)
    return size(facts) if size is not None and facts.keys() >= {"kh", "kw", "c", "o"} else None
