"""Random graphs for tests, made from the op registry.

A random graph is a function of its seed. It is built together with its values in float64, so that no node is NaN,
infinite, large or close to a comparison's edge: what differs afterwards differs because somebody is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autodiff_gen import functional as F
from autodiff_gen import init
from autodiff_gen.autodiff import grad
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.build import apply, apply_node, constant, make_input, make_state
from autodiff_gen.ir.graph import Graph, State
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import OPS, Value
from autodiff_gen.ir.op_kinds import Elementwise, KernelOp, Reduce
from autodiff_gen.ir.types import DTYPES, Dim, Type, bound, broadcast, dtype, f32, planned_size, product

BATCH = 3
LARGEST = 300  # elements of a value
STEEP = 40.0  # magnitude beyond which a value is squashed

# float32 in C against float32 in NumPy: |c - numpy| <= RELATIVE * max|numpy| + ABSOLUTE, per array. The same bound
# decides whether a graph is tame enough to be compared: its float32 and float64 values agree within a tenth of it.
RELATIVE, ABSOLUTE = 2e-4, 2e-6


def close(c: Any, reference: Any, share: float = 1.0) -> bool:
    c, reference = np.asarray(c), np.asarray(reference)
    if c.shape != reference.shape:
        return False
    if reference.dtype.kind != "f":
        return bool(np.array_equal(c, reference))
    if not np.isfinite(reference).all():
        return bool(np.array_equal(c, reference, equal_nan=True))
    limit = share * (RELATIVE * np.max(np.abs(reference), initial=0.0) + ABSOLUTE)
    return bool(np.all(np.abs(c.astype("float64") - reference) <= limit))


@dataclass
class Case:
    """A graph with arrays for its inputs and states at the largest batch."""

    graph: Graph
    feeds: dict[Value, Any]
    init: dict[State, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def batches(self) -> range:
        dims = [d for v in self.graph.inputs for d in v.shape if isinstance(d, Dim)]
        return range(1, max((d.cap for d in dims), default=1) + 1)

    def at(self, n: int) -> dict[Value, Any]:
        """The feeds of the first n samples."""
        return {v: a[tuple(slice(e) for e in bound(v.shape, n))] for v, a in self.feeds.items()}

    def values(self, n: int, float_dtype: str = "float32", graph: Graph | None = None) -> list[Any]:
        return evaluate((graph or self.graph).roots, self.at(n), n, float_dtype)

    def is_tame(self) -> bool:
        """Whether float32 and float64 agree for every n, all numbers are finite and all indices in range."""
        for n in self.batches:
            try:
                pairs = list(zip(self.values(n), self.values(n, "float64"), strict=True))
            except IndexError:
                return False
            for single, double in pairs:
                if not np.isfinite(np.asarray(double, dtype="float64")).all() or not close(
                    single, double, 0.1
                ):
                    return False
        return True


class Builder:
    """A pool of values that grows at random; every value has its float64 array beside it."""

    def __init__(self, seed: int, batch: int = BATCH) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.n: Any = Dim(1, batch) if batch > 1 else 1
        self.batch = batch
        self.inputs: list[Value] = []
        self.states: list[State] = []
        self.feeds: dict[Value, Any] = {}
        self.data: dict[Value, Any] = {}
        self.pool: list[Value] = []

    # Leaves

    def _draw(self, type: Type, high: int) -> Any:
        shape = bound(type.shape, None)
        if type.dtype.kind == "f":
            return self.numbers.uniform(-1.5, 1.5, shape).astype("float32")
        return self.numbers.integers(0, high, shape).astype(type.dtype.numpy)

    def input(self, shape: Sequence[Any], dtype: Any = f32, high: int = 2) -> Value:
        v = make_input(f"x{len(self.inputs)}", Type(dtype, tuple(shape)))
        if dtype.kind != "f":
            v.node.attrs["classes"] = high
        self.inputs.append(v)
        self.feeds[v] = self.data[v] = self._draw(v.type, high)
        self.pool.append(v)
        return v

    def state(self, shape: Sequence[int], name: str = "") -> Value:
        values = self._draw(Type(f32, tuple(shape)), 2)
        state = State(name or f"w{len(self.states)}", Type(f32, tuple(shape)), init.Given(values))
        v = make_state(state)
        self.states.append(state)
        self.feeds[v] = self.data[v] = values
        self.pool.append(v)
        return v

    # Growing

    def keep(self, v: Value) -> Value:
        """Note v's array; a value that is large, or not finite, is replaced by one that is tame."""
        (array,) = evaluate([v], self.data, self.batch, "float64")
        if v.dtype.kind == "f" and (not np.isfinite(array).all() or np.max(np.abs(array), initial=0) > STEEP):
            if not np.isfinite(array).all():
                raise ShapeError("not a finite number")
            v = apply("tanh", v * (1.0 / STEEP))
            (array,) = evaluate([v], self.data, self.batch, "float64")
        self.data[v] = array
        self.pool.append(v)
        return v

    def shape(self, rank: int | None = None) -> tuple[Any, ...]:
        rank = self.random.choice((0, 1, 1, 2, 2, 2, 3)) if rank is None else rank
        extents = [self.random.choice((1, 2, 3, 4, 5)) for _ in range(rank)]
        shape: list[Any] = list(extents)
        if shape and self.random.random() < 0.5:
            shape[0] = self.n
        return tuple(shape)

    def pick(self, fits: Callable[[Value], bool]) -> Value | None:
        """A value of the pool, late ones more often."""
        fitting = [v for v in self.pool if fits(v)]
        if not fitting:
            return None
        return fitting[max(self.random.randrange(len(fitting)), self.random.randrange(len(fitting)))]

    def of_dtype(self, name: str, shape: Sequence[Any] | None = None) -> Value:
        """A value of the dtype that broadcasts with `shape`."""

        def fits(v: Value) -> bool:
            if v.dtype.name != name:
                return False
            if shape is None:
                return True
            try:
                together = broadcast(v.shape, tuple(shape))
            except ShapeError:
                return False
            return planned_size(together) <= LARGEST

        found = self.pick(fits) if self.random.random() < 0.9 else None
        if found is not None:
            return found
        if name == "f32":
            wanted = self.shape() if shape is None else tuple(shape)
            if len(self.inputs) < 6 and not gaps(wanted):
                return self.input(wanted)
            return constant(np.float32(self.random.choice((0.5, -1.25, 2.0, 1.0, 0.0))))
        x = self.of_dtype("f32", shape)
        if name == "bool":
            return self.keep(self.compare("gt", x, constant(0.31)))
        return self.keep(apply(f"to_{name}", apply("abs", x) * 2.0 + 0.37))

    def compare(self, name: str, a: Value, b: Value) -> Value:
        """A comparison with no near ties of values that are computed differently."""
        x, y = (evaluate([v], self.data, self.batch, "float64")[0] for v in (a, b))
        if a.dtype.kind == "f" and np.any(np.abs(x - y) < 1e-3):
            b = b + 0.0173
            (y,) = evaluate([b], self.data, self.batch, "float64")
            if np.any(np.abs(x - y) < 1e-3):
                raise ShapeError("too close")
        return apply(name, a, b)

    def elementwise(self) -> Value:
        names = [
            k
            for k, op in OPS.items()
            if isinstance(op.lower, Elementwise)
            and op.samples
            and k not in ("copy", "merged", "rand_u32", "quantize", "quantize_s32", "step_s8")
        ]
        name = self.random.choice(sorted(names))
        sample = self.random.choice(OPS[name].samples)
        operands: list[Value] = []
        shape: Any = None
        for i in range(len(sample.inputs)):
            v = self.of_dtype(sample.dtypes.get(i, "f32"), shape)
            shape = v.shape if shape is None else broadcast(shape, v.shape)
            operands.append(v)
        if self.random.random() < 0.15 and len(operands) == 2 and operands[0].dtype.kind == "f":
            operands[1] = constant(np.float32(self.random.choice((1.0, 0.5, -1.0, 2.0, 0.0))))
        guarded = _guard(name, operands)
        if name in JUMPS:
            (x,) = evaluate([guarded[0]], self.data, self.batch, "float64")
            from_jump = x - JUMPS[name](x)
            if np.any(np.abs(from_jump) < 1e-3):
                raise ShapeError("too close to a jump")
        made = apply(name, *guarded, **sample.attrs)
        if made.dtype.kind == "b" and len(guarded) == 2 and guarded[0].dtype.kind == "f":
            made = self.compare(name, guarded[0], guarded[1])
        return self.keep(made)

    def reduction(self) -> Value:
        x = self.of_dtype("f32")
        name = self.random.choice(sorted(k for k, op in OPS.items() if isinstance(op.lower, Reduce)))
        if not x.shape:
            raise ShapeError("nothing to reduce")
        axes = tuple(sorted(self.random.sample(range(x.ndim), self.random.randint(1, x.ndim))))
        if name.endswith("_with_index") or name == "prod":
            axes = axes[:1]
        node = apply_node(name, x, axes=axes, keepdim=self.random.random() < 0.5)
        for r in node.results:
            self.keep(r)
        return node.results[0]

    def view(self) -> Value:
        x = self.pick(lambda v: True)
        assert x is not None
        kind = self.random.choice(("permute", "reshape", "broadcast_to", "unit"))
        if kind == "permute" and x.ndim > 1:
            dims = list(range(x.ndim))
            self.random.shuffle(dims)
            return self.keep(apply("permute", x, dims=tuple(dims)))
        if kind == "broadcast_to":
            shape: list[Any] = [self.random.choice((2, 3, self.n)) if d == 1 else d for d in x.shape]
            if self.random.random() < 0.5:
                shape.insert(0, self.random.choice((2, self.n)))
            if sum(isinstance(d, Dim) for d in shape) <= 1 and planned_size(tuple(shape)) <= LARGEST:
                return self.keep(apply("broadcast_to", x, shape=tuple(shape)))
        if kind == "reshape" and (shapes := _reshapes(x.shape)):
            return self.keep(apply("reshape", x, shape=self.random.choice(shapes)))
        shape = list(x.shape)
        shape.insert(self.random.randint(0, x.ndim), 1)
        return self.keep(apply("reshape", x, shape=tuple(shape)))

    def window(self) -> Value:
        """A part of a value; the batch axis whole."""
        x = self.pick(lambda v: v.ndim >= 1)
        if x is None:
            raise ShapeError("nothing to cut")
        return self.keep(self.cut(x, [None] * x.ndim))

    def cut(self, x: Value, sizes: Sequence[Any]) -> Value:
        """A random window of x, of the given extents (None: any)."""
        shape, starts, steps = [], [], []
        for d, wanted in zip(x.shape, sizes, strict=True):
            taken = d if isinstance(d, Dim) else wanted or self.random.choice((1, d, (d + 1) // 2))
            step = 1 if isinstance(d, Dim) or taken == 1 else self.random.choice((1, -1, 2))
            if not isinstance(d, Dim) and (taken - 1) * abs(step) >= d:
                step = 1
            reach = 0 if isinstance(d, Dim) else (taken - 1) * step
            free = 0 if isinstance(d, Dim) else d - 1 - abs(reach)
            starts.append(self.random.randint(0, free) - min(reach, 0))
            shape.append(taken)
            steps.append(step)
        return apply("slice", x, shape=tuple(shape), starts=tuple(starts), steps=tuple(steps))

    def assembled(self) -> Value:
        """Values of one shape side by side, in a frame perhaps."""
        x = self.pick(
            lambda v: v.dtype.kind in "fi" and v.ndim >= 1 and planned_size(v.shape) <= LARGEST // 3
        )
        if x is None or all(isinstance(d, Dim) for d in x.shape):
            raise ShapeError("nothing to assemble")
        axis = self.random.choice([i for i, d in enumerate(x.shape) if not isinstance(d, Dim)])
        others = [v for v in self.pool if v.type == x.type]
        parts = [x, *(self.random.choice(others) for _ in range(self.random.randint(0, 2)))]
        before, after, step = self.random.choice((0, 0, 1)), self.random.choice((0, 0, 2)), len(parts)
        d, woven = x.shape[axis], self.random.random() < 0.3
        starts = tuple(
            tuple((before + (k if woven else k * d)) if i == axis else 0 for i in range(x.ndim))
            for k in range(len(parts))
        )
        shape = tuple(before + d * step + after if i == axis else e for i, e in enumerate(x.shape))
        steps = tuple(step if woven and i == axis else 1 for i in range(x.ndim))
        fill = self.random.choice((0.0, -1.0))
        attrs = {"shape": shape, "starts": starts, "steps": (steps,) * len(parts), "fill": fill}
        return self.keep(apply("assemble", *parts, **attrs))

    def product(self) -> Value:
        a = self.pick(lambda v: v.dtype is f32 and v.ndim >= 2)
        if a is None:
            a = self.input((self.n, self.random.choice((1, 2, 3))))
        lead, k = a.shape[:-2], a.shape[-1]
        swapped = self.random.random() < 0.5

        def fits(v: Value) -> bool:
            inner = v.shape[-1 if swapped else -2] if v.ndim >= 2 else None
            if v.dtype is not f32 or v.ndim != a.ndim or v.shape[:-2] != lead or inner != k:
                return False
            shape = (*a.shape[:-1], v.shape[-2 if swapped else -1])
            return sum(isinstance(d, Dim) for d in shape) <= 1 and planned_size(shape) <= LARGEST

        b = self.pick(fits)
        if b is None and isinstance(k, Dim):
            raise ShapeError("the batch is the outermost axis of an input")
        if b is None:
            other = self.random.choice((1, 2, 4))
            if gaps((*lead, k)):
                raise ShapeError("the batch is the outermost axis of an input")
            b = self.input((*lead, other, k) if swapped else (*lead, k, other))
        if swapped:
            b = apply("permute", b, dims=(*range(b.ndim - 2), b.ndim - 1, b.ndim - 2))
        return self.keep(apply("matmul", a, b))

    def chosen(self) -> Value:
        x = self.pick(lambda v: v.dtype is f32 and v.ndim >= 1 and not isinstance(v.shape[-1], Dim))
        if x is None:
            raise ShapeError("nothing to pick from")
        index = self.pick(
            lambda v: (
                v.dtype.kind in "iu"
                and v.shape == x.shape[:-1]
                and int(self.data[v].max()) < x.shape[-1]
                and int(self.data[v].min()) >= 0
            )
        )
        if index is None:
            index = apply_node("max_with_index", x, axes=(x.ndim - 1,), keepdim=False).results[1]
        return self.keep(apply("pick", x, index))

    def called(self) -> Value:
        """A call of a kernel, by a row of its op's table; elements of earlier values in the rows' shapes."""
        names = [
            k for k, op in OPS.items() if isinstance(op.lower, KernelOp) and op.samples and op.vjp is not None
        ]
        name = self.random.choice(sorted(names))
        sample = self.random.choice(OPS[name].samples)
        if max(map(planned_size, sample.inputs)) > LARGEST:
            raise ShapeError("too large")
        operands = []
        for i, shape in enumerate(sample.inputs):
            kind = dtype(sample.dtypes.get(i, "f32"))
            size = planned_size(shape)
            v = self.pick(
                lambda v, size=size: (
                    v.dtype is f32
                    and not any(isinstance(d, Dim) for d in v.shape)
                    and planned_size(v.shape) == size
                )
            )
            if (
                kind is not f32 or v is None or name == "max_pool2d"
            ):  # maxima of computed values may nearly tie
                if len(self.inputs) >= 8:
                    raise ShapeError("enough inputs")
                v = self.input(shape, kind, sample.high)
            operands.append(v if v.shape == tuple(shape) else apply("reshape", v, shape=tuple(shape)))
        for r in apply_node(name, *operands, **sample.attrs).results:
            self.keep(r)
        return operands[0]

    def extra(self) -> Value:
        """Indices and counts."""
        if self.random.random() < 0.5:
            size = self.random.choice((2, 3, self.n))
            return self.keep(apply("to_f32", apply("iota", size=size)))
        return self.keep(apply("extent", extent=self.n * 2 if self.batch > 1 else 2) * 0.25)

    def grow(self, count: int) -> None:
        steps = (
            [self.elementwise] * 12
            + [self.reduction] * 3
            + [self.view] * 4
            + [self.product] * 3
            + [self.window, self.window, self.assembled]
            + [self.chosen, self.extra, self.called, self.called]
        )
        made = 0
        while made < count:
            before = len(self.pool)
            try:
                self.random.choice(steps)()
            except ShapeError:
                continue
            made += max(len(self.pool) - before, 1)


# The jump nearest to x of functions that have some.
JUMPS: dict[str, Any] = {
    "floor": np.rint,
    "round": lambda x: np.floor(x) + 0.5,
    "sign": np.zeros_like,
}


def _guard(name: str, operands: list[Value]) -> list[Value]:
    """Operands brought into the op's domain, with margin."""
    if name in ("exp", "expm1"):
        return [apply("tanh", operands[0]) * 2.0]
    if name in ("log", "sqrt", "log1p", "rsqrt"):
        return [apply("square", operands[0]) + 0.4]
    if name == "pow":
        return [apply("square", operands[0]) + 0.4, apply("tanh", operands[1])]
    if name == "reciprocal":
        return [apply("square", operands[0]) + 0.6]
    if name == "div":
        return [operands[0], apply("square", operands[1]) + 0.6]
    if name.startswith("to_") and DTYPES[name[3:]].kind in "iu" and operands[0].dtype.kind == "f":
        return [apply("abs", operands[0]) * 1.5 + 0.23]
    return operands


def _reshapes(shape: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Other shapes of the same elements; the batch stays the outermost axis, wherever it is merged into."""
    moving = [d for d in shape if d != 1]
    if any(isinstance(d, Dim) for d in moving[1:]):
        return []
    total = product(shape)
    if isinstance(total, int):
        pairs = [(a, total // a) for a in range(2, total) if total % a == 0]
        return [(total,), *pairs]
    return [(total,), *((total // a, a) for a in range(2, total.coef + 1) if total.coef % a == 0)]


def random_function(seed: int, size: int, batch: int = BATCH, gradients: bool = True) -> Case:
    """A graph of inputs and outputs: `size` values, and with luck the gradients of some of them."""
    b = Builder(seed, batch)
    b.input((b.n, b.random.choice((1, 2, 4))))
    b.input(b.random.choice(((2, 3), (4,), (3, 3), ())))
    b.grow(size)
    unread = [v for v in b.pool if v.node.operands]
    outputs = unread[-1:] + b.random.sample(unread, min(len(unread), b.random.randint(0, 3)))
    if gradients and b.random.random() < 0.6:
        smooth = [v for v in b.pool if v.dtype is f32 and v.node.operands][-3:]
        xs = [v for v in b.inputs if v.dtype is f32]
        if smooth:
            loss = F.sum(F.square(apply("tanh", smooth[0])))
            for v in smooth[1:]:
                loss = loss + F.sum(F.square(apply("tanh", v)))
            outputs += [loss, *grad(loss, b.random.sample(xs, min(2, len(xs))))]
    unique = list(dict.fromkeys(v for v in outputs if not gaps(v.shape)))
    if not unique:
        unique = [F.sum(apply("to_f32", outputs[0]) if outputs[0].dtype is not f32 else outputs[0])]
    used = Graph(f"f{seed}", tuple(b.inputs), {f"y{i}": v for i, v in enumerate(unique)})
    return Case(used, dict(b.feeds), {}, seed)


def gaps(shape: Sequence[Any]) -> bool:
    """Whether the batch is not the outermost axis: such values can be neither inputs nor outputs."""
    return any(isinstance(d, Dim) for d in [d for d in shape if d != 1][1:])
