"""Back-propagation through time: the gradient of a scan is a scan in the opposite direction.

Its body is the VJP of the region. Old carries and products are read from the stacks of the forward scan; cheap values
are recomputed. The gradient of a captured weight is a sum over all times: if its terms are products or sums, their
factors are stacked and multiplied once, after the loop, so that no weight gradient is carried and the weight's update
fuses with the product. Gradients of other captures accumulate in a carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...autodiff import downstream, pull_back, zeros_like
from ...ir.build import apply, with_shape
from ...ir.closures import param
from ...ir.names import short_name
from ...ir.node import Node, OptionalValues, Value, Wanted, base, topological
from ...ir.rewrite import replaced
from ...ir.types import product
from ..products.contraction import transposed
from .scan_builder import make_scan, products, stack_axis, time_first


@dataclass
class _Backward:
    """The scan under construction: initial carries, xs, ys, and the params of its region."""

    init: list[Value] = field(default_factory=list)
    carries: list[Value] = field(default_factory=list)  # the params of the carries
    xs: list[Value] = field(default_factory=list)
    elements: list[Value] = field(default_factory=list)  # the params of the elements of xs
    ys: list[Value] = field(default_factory=list)

    def add_element(self, name: str, outer: Value, like: Value) -> Value:
        """Add `outer`, [time, ...], to xs; returns the param of its elements, of the type of `like`."""
        inner = param(name, like.type)
        self.xs.append(outer)
        self.elements.append(inner)
        return inner

    def add_carry(self, name: str, first: Value) -> Value:
        """Add a carry with the initial value `first`; returns its param."""
        inner = param(name, first.type)
        self.init.append(first)
        self.carries.append(inner)
        return inner

    def add_stack(self, v: Value) -> int:
        """Add v to ys, unless it is there; returns its index."""
        if v not in self.ys:
            self.ys.append(v)
        return self.ys.index(v)


def scan_vjp(node: Node, dys: OptionalValues, wanted: Wanted) -> list[Value | None]:
    """One gradient per operand of the scan `node`; None if it is not wanted or zero."""
    (region,), count, elements = node.regions, node.attrs["carries"], node.attrs["xs"]
    old, axes = region.params[:count], node.attrs["axes"]
    active, reached = _carries(node, dys, wanted)
    live = [i for i in range(count) if i in active and i in reached]
    back = _Backward()
    d_carry = {}
    for i in live:
        dy = dys[i]
        d_carry[i] = back.add_carry(f"d_{_name(old[i])}", zeros_like(node.results[i]) if dy is None else dy)
    ys, d_ys = [region.results[i] for i in live], [d_carry[i] for i in live]
    for k, axis in enumerate(axes, start=count):
        dy = dys[k]
        if dy is not None:
            ys.append(region.results[k])
            name = f"d_{_name(region.results[k])}"
            d_ys.append(back.add_element(name, time_first(dy, axis), region.results[k]))

    sources = [
        v
        for i, v in enumerate(region.params)
        if (i in live if i < count else wanted[i]) and v.type.dtype.kind == "f"
    ]
    gradients = dict(zip(sources, pull_back(ys, d_ys, sources), strict=True))
    not_zero = [g for g in gradients.values() if g is not None]
    mapping = _forward_values(node, back, not_zero)
    in_body = dict(zip(not_zero, replaced(not_zero, mapping), strict=True))
    pulled = {v: in_body[g] for v, g in gradients.items() if g is not None}

    carries = [pulled.get(old[i], zeros_like(old[i])) for i in live]
    x_grads: dict[int, int] = {}
    for i in range(count, count + elements):
        if region.params[i] in pulled:
            x_grads[i] = back.add_stack(pulled[region.params[i]])
    captures = region.params[count + elements :]
    sums = [_CaptureGradient(v, back, region.params.index(v)) for v in captures if v in pulled]
    for s in sums:  # the order matters: sums are hoisted only over values that the products have stacked
        s.hoist_products(pulled[s.capture])
    for s in sums:
        s.hoist_sums()
    for s in sums:
        s.carry_rest(carries)

    backward = make_scan(
        back.init,
        back.xs,
        [*back.carries, *back.elements],
        carries,
        back.ys,
        node.attrs["length"],
        not node.attrs["reverse"],
    )
    out: list[Value | None] = [None] * len(region.params)
    for k, i in enumerate(live):
        out[i] = backward.results[k] if wanted[i] else None
    for i, k in x_grads.items():
        out[i] = _stack(backward, k)
    for s in sums:
        out[s.operand] = s.total(backward)
    return out


def _name(v: Value) -> str:
    return short_name(base(v))


def _stack(scan: Node, k: int) -> Value:
    """The k-th stack of a scan, [time, ...]."""
    return time_first(scan.results[scan.attrs["carries"] + k], scan.attrs["axes"][k])


def _carries(node: Node, dys: OptionalValues, wanted: Wanted) -> tuple[set[int], set[int]]:
    """Two sets of carries: those that depend on an operand whose gradient is wanted, and those on which a result with a
    given gradient depends."""
    (region,), count = node.regions, node.attrs["carries"]
    order = region.nodes
    active: set[int] = {i for i in range(count) if wanted[i]}
    while True:
        sources = [v for i, v in enumerate(region.params) if (i in active if i < count else wanted[i])]
        below = downstream(order, sources)
        more = {i for i in range(count) if region.results[i] in below} | active
        if more == active:
            break
        active = more
    reached = {i for i in range(count) if dys[i] is not None}
    given = [r for r, dy in zip(region.results[count:], dys[count:], strict=True) if dy is not None]
    while True:
        ends = {*given, *(region.results[i] for i in reached)}
        more = reached | {
            i for i in range(count) if not ends.isdisjoint(downstream(order, [region.params[i]]))
        }
        if more == reached:
            return active, reached
        reached = more


def _forward_values(node: Node, back: _Backward, gradients: Sequence[Value]) -> dict[Value, Value]:
    """The values in the backward body that replace the region's params and products; of each chain of products, the
    first value that the gradients read, otherwise the last, is stored.
    """
    (region,), count = node.regions, node.attrs["carries"]
    forward = set(region.nodes)
    read = {v for n in topological(gradients) if n not in forward for v in n.operands}
    saved = set(region.params[:count])
    for chain in products(region):
        saved.add(next((v for v in chain if v in read), chain[-1]))
    mapping: dict[Value, Value] = {}
    for k, axis in enumerate(node.attrs["axes"], start=count):
        v = region.results[k]
        if v in saved and v not in mapping:
            mapping[v] = back.add_element(_name(v), time_first(node.results[k], axis), v)
    for i in range(count, len(region.params)):
        v = region.params[i]
        if v in mapping:
            continue
        if i < count + node.attrs["xs"]:
            mapping[v] = back.add_element(_name(v), node.operands[i], v)
        else:
            mapping[v] = node.operands[i]
    return mapping


@dataclass(frozen=True)
class _Factor:
    """A value of the backward body for all times, with permuted axes: the stack of `ys[k]`, or `outer`, one of xs."""

    outer: Value | None
    k: int
    dims: tuple[int, ...]

    def value(self, scan: Node) -> Value:
        """The value, [time, ...], given the backward scan."""
        v = _stack(scan, self.k) if self.outer is None else self.outer
        return _permuted(v, (0, *(d + 1 for d in self.dims)))


class _CaptureGradient:
    """The gradient of one capture: products and sums, which are hoisted out of the loop, and the rest, which
    accumulates in a carry."""

    def __init__(self, capture: Value, back: _Backward, operand: int) -> None:
        self.capture, self.back, self.operand = capture, back, operand
        self.products: list[tuple[_Factor, _Factor, tuple[int, ...]]] = []
        self.summed: list[tuple[_Factor, tuple[int, ...]]] = []
        self.rest: list[Value] = []
        self.carry: int | None = None

    def hoist_products(self, gradient: Value) -> None:
        """Hoist the terms that are matrix products."""
        for term in _terms(gradient):
            core, dims = _unpermuted(term)
            if core.node.op.name == "matmul" and len(core.type.shape) == 2:
                a, b = core.node.operands
                self.products.append((self._factor(a), self._factor(b), dims))
            else:
                self.rest.append(term)

    def hoist_sums(self) -> None:
        """Hoist sums of values that are stacked anyway; for other values a carry is cheaper than a stack."""
        rest, self.rest = self.rest, []
        for term in rest:
            core = term.node.operands[0] if term.node.op.name == "reshape" else term
            is_sum = core.node.op.name == "sum"
            source = core.node.operands[0] if is_sum else core  # with one sample there is no sum
            if self._is_stacked(source):
                self.summed.append((self._factor(source), tuple(core.node.attrs["axes"]) if is_sum else ()))
            else:
                self.rest.append(term)

    def carry_rest(self, carries: list[Value]) -> None:
        """Accumulate the other terms in a carry, which is appended to `carries`."""
        if self.rest:
            self.carry = len(carries)
            total = self.back.add_carry(f"d_{_name(self.capture)}", zeros_like(self.capture))
            for term in self.rest:
                total = apply("add", total, term)
            carries.append(total)

    def _is_stacked(self, v: Value) -> bool:
        source, _ = _unpermuted(v)
        return source in self.back.elements or source in self.back.ys

    def _factor(self, v: Value) -> _Factor:
        source, dims = _unpermuted(v)
        if source in self.back.elements:
            return _Factor(self.back.xs[self.back.elements.index(source)], -1, dims)
        return _Factor(None, self.back.add_stack(source), dims)

    def total(self, scan: Node) -> Value:
        """The sum of all terms, given the backward scan."""
        parts = [self._product(scan, *p) for p in self.products]
        for factor, axes in self.summed:
            whole = apply("sum", factor.value(scan), axes=(0, *(a + 1 for a in axes)), keepdim=False)
            parts.append(with_shape(whole, self.capture.type.shape))
        if self.carry is not None:
            parts.append(scan.results[self.carry])
        out = parts[0]
        for part in parts[1:]:
            out = apply("add", out, part)
        return out

    def _product(self, scan: Node, a: _Factor, b: _Factor, dims: tuple[int, ...]) -> Value:
        """The sum of a . b over time, as one product of the rows of all times."""
        left, right = _permuted(a.value(scan), (0, 2, 1)), b.value(scan)  # [time, rows, ...]
        batch_first = stack_axis(right.type.shape[1:], 1 in scan.attrs["axes"]) == 1
        return _permuted(
            apply("matmul", transposed(_rows(left, batch_first)), _rows(right, batch_first)), dims
        )


def _rows(v: Value, batch_first: bool) -> Value:
    """[time, rows, k] as [rows * time, k] or [time * rows, k]."""
    v = _permuted(v, (1, 0, 2)) if batch_first else v
    return apply("reshape", v, shape=(product(v.type.shape[:2]), v.type.shape[2]))


def _permuted(v: Value, dims: Sequence[int]) -> Value:
    return v if tuple(dims) == tuple(range(len(dims))) else apply("permute", v, dims=tuple(dims))


def _unpermuted(v: Value) -> tuple[Value, tuple[int, ...]]:
    """(source, dims) with v = permute(source, dims)."""
    dims = tuple(range(len(v.type.shape)))
    while v.node.op.name == "permute":
        inner: Sequence[int] = v.node.attrs["dims"]
        dims, v = tuple(inner[i] for i in dims), v.node.operands[0]
    return v, dims


def _terms(v: Value) -> list[Value]:
    """The terms of a sum of gradients."""
    out, pending = [], [v]
    while pending:
        term = pending.pop()
        if term.node.op.name == "add" and all(o.type == v.type for o in term.node.operands):
            pending.extend(reversed(term.node.operands))
        else:
            out.append(term)
    return out
