"""Values, nodes and graphs: the form in which a model travels from the model file to C.

Nodes are immutable and pure; values hash by identity. Nothing here recurses along the graph, so chains of any
length work.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import op as _op
from .dtypes import DTYPES, DType, Type, bool_, f32, s32
from .errors import GraphError, ShapeError
from .methods import Methods
from .op import OPS, Leaf, Op
from .storage import Storage

_serial = itertools.count()


ROLES = ("parameter", "buffer", "counter", "optimizer")  # what states are for


@dataclass(frozen=True, eq=False)
class State:
    """A named piece of memory that outlives a call: a parameter, running statistics, an optimizer moment.

    `init` is an initialiser of `init.py` or an array; `trainable` says whether `Model` asks for its gradient.
    Parameters are given to optimizers; buffers and counters change as a forward pass says (`with_updates`).
    Graphs and generated code see `type`; with a `storage` that is the shape in which the elements lie in memory,
    while `init`, `state_dict` and everything that users see keep the `logical` one.
    """

    name: str
    type: Type
    init: Any
    trainable: bool = True
    role: str = "parameter"
    storage: Storage | None = None

    @property
    def logical(self) -> Type:
        """The type as the model gives it."""
        return self.type if self.storage is None else Type(self.type.dtype, self.storage.logical)

    def stored(self, array: Any) -> Any:
        """An array of the logical shape as it lies in memory."""
        return array if self.storage is None else self.storage.stored(array)

    def restored(self, array: Any) -> Any:
        """The inverse of `stored`."""
        return array if self.storage is None else self.storage.restored(array)


class Node:
    """One application of an op. `regions` hold the sub-graphs of fused nodes, scan and cond."""

    __slots__ = ("attrs", "hint", "op", "operands", "regions", "results", "serial")

    def __init__(
        self,
        op: Op,
        operands: tuple[Value, ...],
        attrs: Mapping[str, Any],
        types: tuple[Type, ...],
        regions: tuple[Region, ...] = (),
        hint: str = "",
    ) -> None:
        self.op, self.operands, self.attrs, self.regions = op, operands, dict(attrs), regions
        self.results = tuple(Value(self, i, t) for i, t in enumerate(types))
        self.serial = next(_serial)
        self.hint = hint


class Value(Methods):
    """One result of a node: `(node, index)` with a type. Arithmetic on values builds more nodes; `==` stays
    identity (use F.eq). Methods are torch.Tensor's (see Methods).
    """

    __slots__ = ("index", "node", "type")
    __array_priority__ = 1000
    __array_ufunc__ = None  # so that numpy_array * value builds a node

    def __init__(self, node: Node, index: int, type: Type) -> None:
        self.node, self.index, self.type = node, index, type

    shape = property(lambda self: self.type.shape)
    dtype = property(lambda self: self.type.dtype)
    ndim = property(lambda self: len(self.type.shape))

    @property
    def name(self) -> str | None:
        """The user's name of an input or parameter, else None."""
        state = self.node.attrs.get("state")
        return state.name if state is not None else self.node.attrs.get("name")

    def __repr__(self) -> str:
        return f"<{self.name or self.node.op.name}: {self.type}>"

    def __add__(self, other: Any) -> Value:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return apply("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return apply("sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return apply("sub", other, self)

    def __mul__(self, other: Any) -> Value:
        return apply("mul", self, other)

    def __rmul__(self, other: Any) -> Value:
        return apply("mul", other, self)

    def __truediv__(self, other: Any) -> Value:
        return apply("div", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return apply("div", other, self)

    def __pow__(self, other: Any) -> Value:
        from .functional import pow as pow_

        return pow_(self, other)

    def __rpow__(self, other: Any) -> Value:
        return apply("pow", other, self)

    def __neg__(self) -> Value:
        return apply("neg", self)

    def __matmul__(self, other: Any) -> Value:
        from .functional import matmul

        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Value:
        from .functional import matmul

        return matmul(other, self)

    def __lt__(self, other: Any) -> Value:
        return apply("lt", self, other)

    def __le__(self, other: Any) -> Value:
        return apply("le", self, other)

    def __gt__(self, other: Any) -> Value:
        return apply("gt", self, other)

    def __ge__(self, other: Any) -> Value:
        return apply("ge", self, other)

    def __bool__(self) -> bool:
        raise GraphError(
            "a graph value has no truth value while the graph is built; use F.where for a choice by value"
        )

    def __iter__(self) -> Iterator[Value]:
        raise GraphError("a graph value cannot be iterated over")

    def __getitem__(self, key: Any) -> Value:
        from .functional import getitem

        return getitem(self, key)

    @property
    def T(self) -> Value:
        """The transpose of a matrix: [m, n] -> [n, m]; a view."""
        return apply("permute", self, dims=tuple(reversed(range(self.ndim))))

    def t(self) -> Value:
        return self.T

    def __and__(self, other: Any) -> Value:
        return apply("logical_and", self, other)

    def __or__(self, other: Any) -> Value:
        return apply("logical_or", self, other)

    def __invert__(self) -> Value:
        return apply("logical_not", self)

    def __abs__(self) -> Value:
        return apply("abs", self)


@dataclass(frozen=True, eq=False)
class Region:
    """A sub-graph with explicit captures: `params[i]` stands inside for the node's i-th operand."""

    params: tuple[Value, ...]
    results: tuple[Value, ...]

    def nodes(self) -> list[Node]:
        """The nodes inside, operands first; the params are not among them."""
        params = {v.node for v in self.params}
        return [n for n in topological(self.results, stop=params.__contains__) if n not in params]


@dataclass(frozen=True, eq=False)
class Graph:
    """One entry function in SSA form: inputs and old states -> outputs and new states.

    least_n: the fewest samples that it takes, where the batch may vary.
    `inner`: the body of a loop or a branch of a condition, whose memory is another plan's.
    guard: "loss": inputs and loss are checked before the first state changes (donation.guarded); "gradients": so is
    `proof`, a scalar that is finite only if all new states are (passes/prove_updates.py); None: nothing is.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: Mapping[str, Value]
    updates: Mapping[State, Value] = field(default_factory=dict)
    least_n: int = 1
    inner: bool = False
    guard: str | None = None
    proof: Value | None = None

    @property
    def roots(self) -> tuple[Value, ...]:
        proof = () if self.proof is None else (self.proof,)
        return (*self.outputs.values(), *self.updates.values(), *proof)

    @property
    def states(self) -> tuple[State, ...]:
        """Every state that is read or written, in order of first use."""
        found = {v.node.attrs["state"]: None for v in self.leaves("state")}
        return (*found, *(s for s in self.updates if s not in found))

    def leaves(self, op: str) -> list[Value]:
        return [n.results[0] for n in topological(self.roots) if n.op.name == op]

    def with_roots(self, roots: Sequence[Value]) -> Graph:
        """The same entry with its outputs, updates and proof replaced, in the order of `roots`."""
        k, end = len(self.outputs), len(self.outputs) + len(self.updates)
        return replace(
            self,
            outputs=dict(zip(self.outputs, roots[:k], strict=True)),
            updates=dict(zip(self.updates, roots[k:end], strict=True)),
            proof=roots[end] if self.proof is not None else None,
        )

    def __str__(self) -> str:
        from .ir_text import show

        return show(self)


def _leaf(name: str) -> Op:
    def nothing(*_: Any, **__: Any) -> Any:
        raise AssertionError(f"{name} is a leaf")

    return _op.register(Op(name, nothing, nothing, None, Leaf()))


INPUT, STATE, CONST = _leaf("input"), _leaf("state"), _leaf("const")


def make_input(name: str, type: Type) -> Value:
    return Node(INPUT, (), {"name": name}, (type,)).results[0]


def make_state(state: State) -> Value:
    """The old value of a state, as a graph value."""
    return Node(STATE, (), {"state": state}, (state.type,)).results[0]


def constant(value: Any, dtype_: DType | None = None) -> Value:
    """A constant of the graph. Floats become f32 unless `dtype_` says otherwise; the interpreter, in float64, takes a
    number as it was before that (the attribute `exact`)."""
    array = given = np.asarray(value)
    if dtype_ is None:
        if array.dtype.kind == "f":
            dtype_ = f32
        elif array.dtype.kind == "b":
            dtype_ = bool_
        elif array.dtype.name in (d.numpy for d in DTYPES.values()):
            dtype_ = next(d for d in DTYPES.values() if d.numpy == array.dtype.name)
        else:
            dtype_ = s32
    array = np.array(array, dtype=dtype_.numpy)
    array.flags.writeable = False
    attrs: dict[str, Any] = {"value": array}
    if dtype_.kind == "f" and given.ndim == 0 and given.dtype == np.float64 and float(given) != float(array):
        attrs["exact"] = float(given)
    return Node(CONST, (), attrs, (Type(dtype_, array.shape),)).results[0]


def _as_values(operands: Sequence[Any]) -> tuple[Value, ...]:
    """Operands as values; Python scalars are weakly typed: they take the dtype of the first value beside
    them.
    """
    if all(isinstance(v, Value) for v in operands):
        return tuple(operands)
    like = next((v.dtype for v in operands if isinstance(v, Value) and v.dtype.kind != "b"), f32)
    out = []
    for v in operands:
        if isinstance(v, Value):
            out.append(v)
            continue
        try:
            array = np.asarray(v)
        except ValueError:  # lists of different lengths
            array = np.asarray(None)
        if array.dtype.kind not in "fiub":
            raise ShapeError(
                f"{v!r} cannot stand as an operand; give a graph value, a NumPy array or a number"
            )
        weak = array.ndim == 0 and array.dtype.kind != "b"
        if weak and array.dtype.kind == "f" and like.kind != "f":
            raise ShapeError(
                f"the float {v!r} cannot stand beside a value of dtype {like}; convert with F.to first"
            )
        out.append(constant(array, like if weak else None))
    return tuple(out)


def apply_node(name: str, *operands: Any, hint: str = "", **attrs: Any) -> Node:
    """Build a node of op `name`, its types inferred; ShapeError names the op, the operand types and the rule."""
    op = OPS[name]
    values = _as_values(operands)
    try:
        types = op.infer(*(v.type for v in values), **attrs)
    except ShapeError as error:
        shown = ", ".join(f"{v.name}: {v.type}" if v.name else repr(v.type) for v in values)
        raise ShapeError(f"{name}({shown}): {error}") from None
    return Node(op, values, attrs, types if isinstance(types, tuple) else (types,), hint=hint)


def apply(name: str, *operands: Any, **attrs: Any) -> Value:
    """Like apply_node, for an op with one result."""
    (result,) = apply_node(name, *operands, **attrs).results
    return result


def topological(roots: Iterable[Value], stop: Callable[[Node], bool] | None = None) -> list[Node]:
    """Every node that the roots need, operands first; iterative; the order depends on the graph alone."""
    order: list[Node] = []
    state: dict[Node, int] = {}
    stack: list[Node] = []
    for root in roots:
        stack.append(root.node)
        while stack:
            node = stack[-1]
            seen = state.get(node)
            if seen == 2:
                stack.pop()
            elif seen == 1 or (stop is not None and stop(node)):
                state[node] = 2
                order.append(node)
                stack.pop()
            else:
                state[node] = 1
                stack.extend(v.node for v in reversed(node.operands) if v.node not in state)
    return order


def users(nodes: Iterable[Node]) -> dict[Value, list[Node]]:
    """For each value the nodes that read it, once per use."""
    out: dict[Value, list[Node]] = {}
    for node in nodes:
        for v in node.operands:
            out.setdefault(v, []).append(node)
    return out


def substitute(
    roots: Sequence[Value], rewrite: Callable[[Node, tuple[Value, ...]], Sequence[Value] | None]
) -> list[Value]:
    """Rebuild the graph below `roots`. `rewrite(node, new operands)` gives the node's new results, or None to
    keep it as it is.
    """
    mapping: dict[Value, Value] = {}
    for node in topological(roots):
        operands = tuple(mapping[v] for v in node.operands)
        results = rewrite(node, operands)
        if results is None:
            if operands == node.operands:
                results = node.results
            else:
                types = tuple(r.type for r in node.results)
                results = Node(node.op, operands, node.attrs, types, node.regions, node.hint).results
        mapping.update(zip(node.results, results, strict=True))
    return [mapping[v] for v in roots]


def replaced(roots: Sequence[Value], mapping: Mapping[Value, Value]) -> list[Value]:
    """The graph below `roots` with other values in place of the keys of `mapping`; what does not depend on
    them stays as it is.
    """
    new = dict(mapping)
    for node in topological(roots, stop=lambda n: all(r in new for r in n.results)):
        operands = tuple(new.get(v, v) for v in node.operands)
        if operands != node.operands and not all(r in new for r in node.results):
            types = tuple(r.type for r in node.results)
            made = Node(node.op, operands, node.attrs, types, node.regions, node.hint)
            for old, fresh in zip(node.results, made.results, strict=True):
                new.setdefault(old, fresh)
    return [new.get(v, v) for v in roots]
