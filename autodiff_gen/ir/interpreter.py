"""The interpreter: a graph evaluated in NumPy, op by op, through each record's `ref`.

It is the meaning of the IR, the oracle of the passes, and in float64 the oracle of the gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import ShapeError
from .node import CONST, Node, Region, Value, topological
from .op_kinds import Cond, Leaf, Scan
from .types import Dim, DType

_MAY_VARY = {Dim, tuple}  # the types that may contain a batch size

# The batch size; inside the loop over micro-batches, that and the numbers of this iteration by name; None: the largest.
Batch: TypeAlias = int | Mapping[str, int] | None


def bind(attr: Any, n: Batch) -> Any:
    """An attribute with every batch extent replaced by its value at batch size n."""
    if isinstance(attr, Dim):
        return attr.at(attr.cap if n is None else n[attr.name] if isinstance(n, Mapping) else n)
    if isinstance(attr, tuple) and not _MAY_VARY.isdisjoint(map(type, attr)):
        return tuple([bind(a, n) for a in attr])
    return attr


def evaluate(
    roots: Sequence[Value], feeds: Mapping[Value, Any], n: Batch = None, float_dtype: str = "float32"
) -> list[Any]:
    """The arrays of `roots`, given arrays for the inputs and states. Floats are computed in `float_dtype`.

    n is the batch size; by default it is read off the first fed input that has a batch axis.
    """
    env: dict[Value, Any] = {}
    for v, array in feeds.items():
        dtype = float_dtype if v.type.dtype.kind == "f" else v.type.dtype.numpy
        env[v] = np.asarray(array, dtype=dtype)
        for axis, d in enumerate(v.type.shape):
            if isinstance(d, Dim) and n is None:
                n = env[v].shape[axis] // d.coef
        expected = bind(v.type.shape, n)
        if env[v].shape != expected:
            raise ShapeError(f"{v.name}: expected shape {list(expected)}, got {list(env[v].shape)}")
    given = frozenset([v.node for v in env if env.keys() >= {*v.node.results}])
    with np.errstate(all="ignore"):
        for node in _order(tuple(roots), given):
            env.update(zip(node.results, _compute(node, env, n, float_dtype), strict=True))
    return [env[v] for v in roots]


@functools.lru_cache(maxsize=4)
def _order(roots: tuple[Value, ...], given: frozenset[Node]) -> list[Node]:
    """The nodes to compute. Kept, as many graphs are evaluated at point after point."""
    return [node for node in topological(roots, stop=given.__contains__) if node not in given]


def _compute(node: Node, env: Mapping[Value, Any], n: Batch, float_dtype: str) -> Sequence[Any]:
    if node.op is CONST:
        value = node.attrs["value"]
        if value.dtype.kind == "f":
            value = np.asarray(node.attrs.get("exact", value), dtype=float_dtype)
        return [value]
    if isinstance(node.op.lower, Leaf):
        raise ShapeError(f"no array was given for {node.results[0]!r}")
    if node.regions:
        return _run_regions(node, [env[v] for v in node.operands], n, float_dtype)
    out = node.op.ref(*[env[v] for v in node.operands], **{k: bind(a, n) for k, a in node.attrs.items()})
    outs = out if isinstance(out, tuple) else (out,)
    return [
        o if type(o) is np.ndarray and o.dtype is dtype else np.asarray(o, dtype)
        for o, dtype in zip(outs, [_numpy(r.type.dtype, float_dtype) for r in node.results], strict=True)
    ]


@functools.cache
def _numpy(dtype: DType, float_dtype: str) -> np.dtype[Any]:
    return np.dtype(float_dtype if dtype.kind == "f" else dtype.numpy)


def _run_regions(node: Node, given: Sequence[Any], n: Batch, float_dtype: str) -> Sequence[Any]:
    region = node.regions[0]
    if isinstance(node.op.lower, Scan):
        of_samples = "samples" in node.attrs
        return (_micro_batches if of_samples else _scan)(node, given, n, float_dtype)
    if isinstance(node.op.lower, Cond):
        region, given = node.regions[0 if given[0] else 1], given[1:]
    return _run(region, given, n, float_dtype)


def _run(region: Region, given: Sequence[Any], n: Batch, float_dtype: str) -> list[Any]:
    """The results of a region, given the arrays of its params."""
    env = dict(zip(region.params, given, strict=True))
    for node in region.nodes:
        env.update(zip(node.results, _compute(node, env, n, float_dtype), strict=True))
    return [env[v] for v in region.results]


def _micro_batches(node: Node, given: Sequence[Any], n: Batch, float_dtype: str) -> Sequence[Any]:
    """The loop of passes/memory/micro_batches.py."""
    (region,), carries, xs = node.regions, node.attrs["carries"], node.attrs["xs"]
    whole, most = bind(node.attrs["length"], n), node.attrs["samples"]
    state, parts = list(given[:carries]), list[list[Any]]()
    rows = [bind(v.type.shape[0], 1) for v in node.operands[carries : carries + xs]]  # of a sample
    for start in range(0, whole, most):
        parts_of = zip(given[carries : carries + xs], rows, strict=True)
        now = [*state, *(x[k * start : k * (start + most)] for x, k in parts_of), *given[carries + xs :]]
        numbers = {"n": whole, "start": start, "count": min(most, whole - start)}
        results = _run(region, now, numbers, float_dtype)
        state = results[:carries]
        parts.append(results[carries:])
    return [*state, *(np.concatenate(each) for each in zip(*parts, strict=True))]


def _scan(node: Node, given: Sequence[Any], n: Batch, float_dtype: str) -> Sequence[Any]:
    """The loop of ops/control_flow/scan.py."""
    (region,), carries, xs = node.regions, node.attrs["carries"], node.attrs["xs"]
    times = range(node.attrs["length"])
    state = list(given[:carries])
    out: list[list[Any]] = [[] for _ in times]
    for t in reversed(times) if node.attrs["reverse"] else times:
        now = [*state, *(x[t] for x in given[carries : carries + xs]), *given[carries + xs :]]
        results = _run(region, now, n, float_dtype)
        state, out[t] = results[:carries], results[carries:]
    stacks = [
        np.stack(s, axis=axis) for s, axis in zip(zip(*out, strict=True), node.attrs["axes"], strict=True)
    ]
    return [*state, *stacks]
