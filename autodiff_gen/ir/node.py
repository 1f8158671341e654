"""The record of an op, the registry of all of them, and its applications: values, nodes and regions.

One record holds everything the project knows of an op: its shape rule, its meaning in NumPy, its VJP, its lowering to
C, its name in PyTorch, and samples for the tests. Nothing else may special-case an op by name.

Nodes are immutable and pure; values hash by identity. Nothing here recurses along the graph, so chains of any
length work.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias

from ..errors import GraphError, ShapeError
from .op_forms import Form, TwoOpsInOne
from .op_kinds import Assemble, Attrs, Leaf, Lowering, View
from .origin import Origin, current
from .types import Shape, Type, planned
from .windows import Windows

if TYPE_CHECKING:
    from .strides import Strided

P = ParamSpec("P")

_serial = itertools.count()


@dataclass(frozen=True)
class Sample:
    """One row of an op's test table.

    `inputs` are shapes (from a seeded generator in `domain`, (low, high)), or NumPy-like literals;
    `attrs` as given to `apply`. `dtypes` names an operand's dtype where it is not f32; integer operands are from 0
    to less than `high`, or in the range that `integers` has for them.
    """

    inputs: tuple[tuple[int, ...], ...]
    attrs: Attrs = field(default_factory=dict)
    domain: tuple[float, float] = (-2.0, 2.0)
    dtypes: Mapping[int, str] = field(default_factory=dict)
    high: int = 2
    integers: Mapping[int, tuple[int, int]] = field(default_factory=dict)


Values: TypeAlias = Sequence["Value"]
OptionalValues: TypeAlias = Sequence["Value | None"]  # gradients; None where there is none
Wanted: TypeAlias = Sequence[bool]  # for each operand, whether its gradient is read

# (gradients of the results, operands, results, attributes, wanted) -> gradients of the operands
VJP: TypeAlias = Callable[[OptionalValues, Values, Values, Attrs, Wanted], OptionalValues]


def _never(attrs: Attrs) -> bool:
    return False


def _no_range(attrs: Attrs) -> tuple[int, int] | None:
    return None


def _no_windows(shapes: Sequence[Shape], attrs: Attrs) -> Windows | None:
    return None


def _unlimited(attrs: Attrs) -> tuple[float, float]:
    return 0.0, 0.0


@dataclass(frozen=True, eq=False)
class Op:
    """An operation.

    infer: (*operand types, **attrs) -> result type, or a tuple of them; raises ShapeError with the rule that
           failed (the caller prefixes the op's name and appends the operand types).
    ref:   (*arrays, **attrs) -> array, or a tuple of them; works in any float dtype; the op's meaning.
    vjp:   (dys, inputs, outs, attrs, wanted) -> one gradient value (or None) per input; `dys` has None where
           no gradient arrives, `wanted` tells which inputs need one. None: the op is not differentiable.
           `simple` and `by_operand` of ops/support.py make it of one function per input.
    lower: how it becomes C.
    torch: the same thing as a PyTorch expression over a, b, c (or `operands`) and the attributes' names; None
           where PyTorch has none.
    form:  how the op computes the result of another op; None where it is no form of another op.

    Traits, which passes read instead of the name. All but the last three are of elementwise ops, and hold in float32
    too:

    exact:        every machine rounds the result alike (IEEE 754 arithmetic), so constants may be folded.
    signs:        the result is the sum of the operands with these signs: (1, -1) of a - b.
    powers:       the result is the product of the operands to these powers: (1, -1) of a / b, (0.5,) of sqrt.
    chooses:      each element of the result is the element of one of these operands; (0,): the result is operand 0.
    bounded_by:   no element's magnitude exceeds the largest of the elements of these operands that it is computed from.
    non_negative: no element is less than 0; it may be NaN.
    monotone:     whether, with these attributes, the result never decreases where the one operand increases, and is NaN
                  where it is.
    limits:       with these attributes, (low, high) where the result is the one operand between these limits, NaN where
                  it is NaN; (0, 0) of other ops.
    known_range:  with these attributes, the least and the largest element of the result, which equals the only operand;
                  None where the range follows from the operands.
    comparison:   the result says how the elements of both operands compare: the same for all equal integers.
    equality:     the result is whether the elements of both operands are equal.
    materializes: the result needs other memory than its operand, though they are equal: no pass removes the node.
    factors:      of a product: its elements are sums of products of an element of each of these operands.
    windows:      with these shapes of the operands and attributes, the windows of an image that the op reads.
    scatters:     the result holds the elements of operand 0, moved along these axes, and zeros.
    """

    name: str
    infer: Callable[..., Type | tuple[Type, ...]]
    ref: Callable[..., Any]
    vjp: VJP | None
    lower: Lowering
    samples: tuple[Sample, ...] = ()
    torch: str | None = None
    form: Form | None = None
    exact: bool = False
    signs: tuple[int, ...] = ()
    powers: tuple[float, ...] = ()
    chooses: tuple[int, ...] = ()
    bounded_by: tuple[int, ...] = ()
    non_negative: bool = False
    monotone: Callable[[Attrs], bool] = _never
    limits: Callable[[Attrs], tuple[float, float]] = _unlimited
    known_range: Callable[[Attrs], tuple[int, int] | None] = _no_range
    comparison: bool = False
    equality: bool = False
    materializes: bool = False
    factors: tuple[int, ...] = ()
    windows: Callable[[Sequence[Shape], Attrs], Windows | None] = _no_windows
    scatters: tuple[int, ...] = ()


OPS: dict[str, Op] = {}
_FORMS: dict[tuple[str, type[Form]], list[Op]] = {}


def register(op: Op) -> Op:
    """Add a record to the registry. Raises ValueError for a name, or a form of an op other than TwoOpsInOne, that is
    registered twice: our mistake."""
    if op.name in OPS:
        raise ValueError(f"op {op.name!r} is registered twice")
    OPS[op.name] = op
    if op.form is not None:
        found = _FORMS.setdefault((op.form.of, type(op.form)), [])
        if found and op.form.of and not isinstance(op.form, TwoOpsInOne):
            raise ValueError(f"{found[0].name!r} and {op.name!r} are the same form of op {op.form.of!r}")
        found.append(op)
    return op


def in_forms(op: Op, form: type[Form]) -> Sequence[Op]:
    """The ops that compute the result of `op` in this form."""
    return _FORMS.get((op.name, form), ())


def in_form(op: Op, form: type[Form]) -> Op | None:
    """The op that computes the result of `op` in this form, if there is one."""
    return next(iter(in_forms(op, form)), None)


def registered(make: Callable[P, Op]) -> Callable[P, Op]:
    """A function that makes a record and adds it to the registry."""

    def made(*args: P.args, **traits: P.kwargs) -> Op:
        return register(make(*args, **traits))

    return made


define = registered(Op)


def inferred(op: Op, operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    """The types of the results, by the op's rule. An op that only moves elements keeps the quantisation that all
    operands have. Raises ShapeError."""
    found = op.infer(*operands, **attrs)
    types = found if isinstance(found, tuple) else (found,)
    if not isinstance(op.lower, (View, Assemble)) or all(t.quantization is None for t in operands):
        return types
    shared = operands[0].quantization
    if isinstance(op.lower, Assemble) and shared is not None and shared.axis is not None:
        parts = [(t.quantization, planned(t.shape)) for t in operands if t.quantization is not None]
        if len(parts) == len(operands) and len({q.zero_point for q, _ in parts}) == 1:
            joined = shared.joined(parts, lambda arrays: op.ref(*arrays, **attrs))
            return tuple([Type(t.dtype, t.shape, joined) for t in types])
    if shared is None or any(t.quantization != shared for t in operands):
        raise ShapeError(
            "the operands have different scales or zero points; give all the same, by F.quantize(F.dequantize(x), ...)"
        )
    filled = isinstance(op.lower, Assemble) and sum(t.bytes for t in operands) < types[0].bytes
    if filled and attrs["fill"] != shared.zero_point:
        raise ShapeError(
            f"fills with the integer {attrs['fill']:g}, but 0 is {shared.zero_point} here: "
            f"give value={shared.zero_point}"
        )
    if shared.axis is not None and len(operands) == 1:
        return tuple([operands[0].moved(lambda a: op.ref(a, **attrs), t.shape) for t in types])
    return types if shared.axis is not None else tuple([Type(t.dtype, t.shape, shared) for t in types])


def _leaf(name: str) -> Op:
    def nothing(*_: Any, **__: Any) -> Any:
        raise AssertionError(f"{name} is a leaf")

    return define(name, nothing, nothing, None, Leaf())


INPUT, STATE, CONST = _leaf("input"), _leaf("state"), _leaf("const")


class Node:
    """One application of an op. `regions` hold the sub-graphs of fused nodes, scan and cond; `inferred` is the operands
    for which the op's rule gave the types of the results, None if it gave none."""

    __slots__ = ("attrs", "inferred", "op", "operands", "origin", "regions", "results", "serial")

    def __init__(
        self,
        op: Op,
        operands: tuple[Value, ...],
        attrs: dict[str, Any],
        types: tuple[Type, ...],
        regions: tuple[Region, ...] = (),
        origin: Origin | None = None,
    ) -> None:
        self.op, self.operands, self.attrs, self.regions = op, operands, attrs, regions
        self.results: tuple[Value, ...] = tuple([Value(self, i, t) for i, t in enumerate(types)])
        self.serial = next(_serial)
        self.origin = _created(operands) if origin is None else origin
        self.inferred: tuple[Value, ...] | None = None

    def with_operands(self, operands: tuple[Value, ...]) -> Node:
        """A node over other operands, whose results have the same types; the node itself if these are its operands."""
        if operands == self.operands:
            return self
        types = tuple([r.type for r in self.results])
        node = Node(self.op, operands, self.attrs, types, self.regions, self.origin)
        if self.inferred is self.operands and [v.type for v in operands] == [v.type for v in self.operands]:
            node.inferred = operands
        return node


def _created(operands: tuple[Value, ...]) -> Origin:
    """The origin of a node that is created now. If its operands come from one module inside the current one, the node
    belongs to the inner module; outside of modules a node belongs to the layer whose weight it reads, else to its
    operands' layer."""
    here = current()
    scope, phase = here.scope, here.phase
    if scope:
        inside = {v.node.origin.scope for v in operands if v.node.origin.scope.startswith(f"{scope}.")}
        is_of_one = len(inside) == 1 and operands[0].node.origin.scope in inside
        return Origin(inside.pop() if is_of_one else scope, phase, module=scope, call=here.call)
    for v in operands:
        near = v.node.origin.scope
        if near and (not scope or (v.ndim > 1 and "state" in base(v).node.attrs)):
            scope = near
    return Origin(scope, phase, call=here.call)


class Value:
    """One result of a node: `(node, index)` with a type. `==` is identity (use F.eq). The operators and the methods of
    torch.Tensor build more nodes; functional/tensor_methods.py, which is above this package, installs them.
    """

    __slots__ = ("base", "index", "node", "part", "strided", "type")
    __array_priority__ = 1000
    __array_ufunc__ = None  # so that numpy_array * value builds a node

    def __init__(self, node: Node, index: int, type: Type) -> None:
        """`base` is the value whose bytes a view shows, no view itself; `part` is the same, or the window of it that is
        shown."""
        self.node, self.index, self.type = node, index, type
        self.base = self.part = self
        if isinstance(node.op.lower, View):
            self.base = node.operands[0].base
            self.part = self if node.op.lower.window else node.operands[0].part
        self.strided: tuple[Strided | None] | None = None  # ir/views.py: the layout, once it is known

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

    def __bool__(self) -> bool:
        raise GraphError(
            "a graph value has no truth value while the graph is built; use F.where for a choice by value"
        )

    def __iter__(self) -> Iterator[Value]:
        raise GraphError("a graph value cannot be iterated over; use F.unbind, or x[i] for i in range(...)")

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise GraphError("a graph value cannot become a NumPy array; it has numbers when the model runs")

    def __array_function__(self, function: Any, *args: Any) -> Any:
        if function.__name__ in ("shape", "ndim"):  # which are known while the graph is built
            return getattr(self, function.__name__)
        raise GraphError(f"numpy.{function.__name__} takes no graph values; use a function of F")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise GraphError(
            "elements of a graph value cannot be set; use F.where with a mask, F.cat of parts, or F.scatter"
        )

    if TYPE_CHECKING:  # methods that functional/tensor_methods.py installs and the package itself uses

        def __add__(self, other: Any) -> Value: ...
        def __radd__(self, other: Any) -> Value: ...
        def __sub__(self, other: Any) -> Value: ...
        def __rsub__(self, other: Any) -> Value: ...
        def __mul__(self, other: Any) -> Value: ...
        def __rmul__(self, other: Any) -> Value: ...
        def __truediv__(self, other: Any) -> Value: ...
        def __rtruediv__(self, other: Any) -> Value: ...
        def __pow__(self, other: Any) -> Value: ...
        def __neg__(self) -> Value: ...
        def __matmul__(self, other: Any) -> Value: ...
        def __lt__(self, other: Any) -> Value: ...
        def __le__(self, other: Any) -> Value: ...
        def __gt__(self, other: Any) -> Value: ...
        def __ge__(self, other: Any) -> Value: ...
        def __getitem__(self, key: Any) -> Value: ...
        def __invert__(self) -> Value: ...

        @property
        def requires_grad(self) -> bool: ...
        @requires_grad.setter
        def requires_grad(self, requires_grad: bool) -> None: ...
        @property
        def T(self) -> Value: ...


@dataclass(frozen=True, eq=False)
class Region:
    """A sub-graph with explicit captures: `params[i]` is inside the value of the node's i-th operand."""

    params: tuple[Value, ...]
    results: tuple[Value, ...]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes inside, operands first; the params are not among them."""
        params = {v.node for v in self.params}
        return tuple(n for n in topological(self.results, stop=params.__contains__) if n not in params)


def base(v: Value) -> Value:
    """The value whose bytes a chain of views shows."""
    return v.base


def topological(roots: Iterable[Value], stop: Callable[[Node], bool] | None = None) -> list[Node]:
    """Every node that the roots need, operands first; iterative; the order depends only on the graph."""
    order: list[Node] = []
    begun: set[Node] = set()
    stack: list[Node | None] = []  # None: the node below it comes next in the order
    for root in roots:
        stack.append(root.node)
        while stack:
            node = stack.pop()
            if node is None:
                order.append(stack.pop())  # type: ignore[arg-type]
            elif node not in begun:
                begun.add(node)
                if node.operands and (stop is None or not stop(node)):
                    stack += (node, None)
                    for v in reversed(node.operands):
                        if v.node not in begun:
                            stack.append(v.node)
                else:
                    order.append(node)
    return order


def users(nodes: Iterable[Node]) -> dict[Value, list[Node]]:
    """For each value the nodes that read it, once per use."""
    out: dict[Value, list[Node]] = {}
    for node in nodes:
        for v in node.operands:
            out.setdefault(v, []).append(node)
    return out
