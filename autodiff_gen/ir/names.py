"""The names of values in generated code and reports: `fc1_out`, `d_fc1_out`, `gru_z`; and the functions by which
layers, losses and differentiation label values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from .identifiers import LIBRARY, OURS, identifier
from .node import CONST, Node, Value, base
from .op_kinds import Assemble, Contraction, Elementwise, Leaf, Reduce
from .origin import BACKWARD, OPTIMIZER, OUTPUT, Label, Origin

NO_LAYERS: Mapping[str, str] = MappingProxyType({})
TABLE = "table"  # a constant without another role
PART = "part"  # the role of a term of a gradient
LONGEST_SCOPE = 12  # characters of the path of a module that is written out in names


@dataclass(frozen=True)
class Called:
    """What a name says: `words` for the value, in the module `layer`; whether it is the gradient of that value; and
    which `part` of it, such as the row at a time step."""

    words: str
    layer: str = ""
    is_gradient: bool = False
    part: str = ""

    @property
    def text(self) -> str:
        return "_".join(filter(None, ["d" * self.is_gradient, self.layer, self.words, self.part]))

    @property
    def gradient(self) -> Called:
        return replace(self, is_gradient=True) if not self.is_gradient else Called(self.text, "", True)

    @property
    def in_layer(self) -> str:
        """The text without the module."""
        return replace(self, layer="").text

    def with_word(self, word: str) -> Called:
        return replace(self, words="_".join(filter(None, [self.words, self.part, word])), part="")

    def with_part(self, part: str) -> Called:
        return replace(self, part=f"{self.part}_{part}" if self.part else part)


def with_role(v: Value, role: str) -> Value:
    """v, which is called `role` of its layer from now on."""
    source = _labelled(v)
    if source is not None:
        source.node.origin.labels[source.index] = Label(role, source.node.origin.scope)
    return v


def with_label_of(v: Value, other: Value) -> Value:
    """v, which has the label of `other` from now on; v is a copy or a part of `other`."""
    source, known = _labelled(v), label_of(other)
    if source is not None:
        source.node.origin.labels[source.index] = known or Label(short_name(other))
    return v


def label_of(v: Value) -> Label | None:
    """The label of a value, or of the part of a value that a view shows; None without a label."""
    source = _labelled(v)
    return None if source is None else source.node.origin.labels.get(source.index)


def set_output(v: Value, scope: str) -> None:
    """Label v as the result of the module `scope`; of nested modules that return v, the outermost."""
    source = _labelled(v)
    if source is None or not scope:
        return
    origin = source.node.origin
    known = origin.labels.get(source.index)
    if (known is None or known.role == OUTPUT) and f"{origin.scope}.".startswith(f"{scope}."):
        origin.labels[source.index] = Label(OUTPUT, scope)


def set_gradient(v: Value, of: Value) -> None:
    """Say that v, which is computed in the backward pass, is the gradient of another value; if of several, of one that
    is more than an intermediate value of a layer."""
    source = _labelled(v)
    if source is None or source.node.origin.phase != BACKWARD:
        return
    labels = source.node.origin.labels
    known = labels.get(source.index)
    is_part = v is not source and isinstance(
        of.node.op.lower, Leaf
    )  # such as the gradient of a bias in a batch of 1
    if (
        known is None
        or (known.gradient_of is not None and known.role)
        or (known.gradient_of is not None and not is_part and _rank(of) > _rank(known.gradient_of))
    ):
        labels[source.index] = Label(gradient_of=of)


def set_part(v: Value, of: Value, through: Value | None) -> None:
    """Say that v, which is computed in the backward pass, is a term of the gradient of another value, unless more is
    known of it. through: the value that is computed from `of`, and whose gradient the term is computed from."""
    source = _labelled(v)
    if source is not None and source.node.origin.phase == BACKWARD:
        known = None if through is None else label_of(through)
        word = "" if known is None else known.scope.rpartition(".")[2] if known.role == OUTPUT else known.role
        role = f"from_{identifier(word)}" if word else PART
        source.node.origin.labels.setdefault(source.index, Label(role, gradient_of=of))


def adopt(new: Value, old: Value) -> None:
    """Give `new`, which replaces `old`, the label of old, unless new has a label."""
    known, source = _labelled(old), _labelled(new)
    if known is not None and source is not None and source.node.origin.phase == known.node.origin.phase:
        label = known.node.origin.labels.get(known.index)
        if label is not None:
            source.node.origin.labels.setdefault(source.index, label)
        if known.index == source.index == 0 and source.node.origin.result_of is None:
            source.node.origin.result_of = known.node.origin.result_of


def _rank(v: Value) -> int:
    """How much a name says: 2 for inputs, parameters and results of modules, 1 for roles, 0 for other values."""
    source = base(v)
    label = source.node.origin.labels.get(source.index)
    if isinstance(source.node.op.lower, Leaf) or (label is not None and label.role == OUTPUT):
        return 2
    return int(label is not None)


def _labelled(v: Value) -> Value | None:
    """The value that v shows whole, or the part that it shows; None for inputs, states and
    constants, which have their names."""
    return None if isinstance(v.part.node.op.lower, Leaf) else v.part


def abbreviations(scopes: Iterable[str]) -> dict[str, str]:
    """A name for each long path of a module: the shortest end of the path that no other path has."""
    ends: dict[str, int] = {}
    every = set(scopes)
    for scope in every:
        for end in _ends(scope):
            ends[end] = ends.get(end, 0) + 1
    found = {}
    for scope in every:
        if len(scope) > LONGEST_SCOPE:
            found[scope] = next((end for end in _ends(scope) if ends[end] == 1), scope)
    return found


def _ends(scope: str) -> list[str]:
    """`out_proj`, `self_attn.out_proj`, ... of a path; none begins with a number."""
    parts = scope.split(".")
    ends = [".".join(parts[k:]) for k in reversed(range(len(parts)))]
    return [end for end in ends if not end[:1].isdigit()]


def name_of(v: Value, layers: Mapping[str, str] = NO_LAYERS) -> str:
    """The name of a value where all values of a program are in scope; `layers`: the names of modules."""
    return called(v, layers).text


def called(v: Value, layers: Mapping[str, str] | None = NO_LAYERS) -> Called:
    """The name of a value, divided into its parts; without modules if `layers` is None."""
    v = _inside(v)
    node, label = v.node, v.node.origin.labels.get(v.index)
    if label is None and isinstance(node.op.lower, Leaf):
        if node.op is CONST:
            return Called(_by_value(v))
        return _of_module(v.name) if v.name else Called(identifier(node.op.name))
    if label is not None:
        if label.gradient_of is not None:
            source = _shown(label.gradient_of)
            name = called(source, layers)
            if label.role and isinstance(source.node.op.lower, Leaf) and "state" not in source.node.attrs:
                name = _in_layer(node.origin.scope, name.text, layers)
            return (_with_role(name, label.role) if label.role else name).gradient
        if label.copy_of is not None:
            source = _shown(label.copy_of)
            name, is_temporary = called(source, layers), layers is None and not source.node.origin.labels
            return name if is_temporary or not label.role else _with_role(name, label.role)
        return _in_layer(label.scope, label.role, layers)
    if node.regions:
        return _of_region(v, layers)
    if v.index and v.type.dtype.kind in "iu":
        return _with_role(called(node.results[0], layers), "index")
    if layers is None:
        return Called(_temporary(node))
    scoped = _in_layer(node.origin.scope, "mask" if v.type.dtype.kind == "b" else _kind(node), layers)
    return scoped.gradient if node.origin.phase == BACKWARD and v.type.dtype.kind == "f" else scoped


def short_name(v: Value) -> str:
    """The text of `short_called`."""
    return short_called(v).text


def short_called(v: Value) -> Called:
    """The name of a value where its layer is clear: without the layer. The layer stays if the rest is a name that C or
    generated functions use, or one letter, which may be the variable of a loop."""
    short = called(v, None)
    is_taken = short.text in OURS or short.text in LIBRARY
    if is_taken or len(short.text) == 1:
        full = called(v)
        return full if full != short or not is_taken else Called(f"{short.text}_x")
    return short


def _with_role(name: Called, role: str) -> Called:
    return name.with_part(role) if role == PART else name.with_word(role)


def merged_constant(equal: Sequence[Value]) -> Value:
    """The constant that takes the place of equal ones. If these have several names it belongs to no layer: it is called
    after its value, or by the role that they have in common."""
    first = equal[0]
    if len({name_of(v) for v in equal}) == 1:
        return first
    labels = [v.node.origin.labels.get(v.index, Label()) for v in equal]
    common = Label(labels[0].role)
    is_role = common.role and all(label == Label(common.role, label.scope) for label in labels)
    known = {0: common} if is_role and _by_value(first) == TABLE else {}
    node = first.node
    return Node(CONST, (), node.attrs, (first.type,), origin=Origin(labels=known)).results[0]


def _by_value(v: Value) -> str:
    """The name of a constant that belongs to no layer: `zeros_32`, `ones_16`, `table`."""
    array = v.node.attrs["value"]
    word = "zeros" if not array.any() else "ones" if (array == 1).all() else ""
    return f"{word}_{array.size}" if word else TABLE


def _temporary(node: Node) -> str:
    """The word for a value that is known only by its computation."""
    op, lower = node.op, node.op.lower
    if isinstance(lower, Reduce):
        return "total" if lower.sums else "reduced"
    if isinstance(lower, Elementwise) and not lower.calls:
        return _NOUNS.get((op.signs, op.powers), "val")
    return _kind(node)


_NOUNS: Mapping[tuple[tuple[int, ...], tuple[float, ...]], str] = {
    ((1, 1), ()): "total",
    ((1, -1), ()): "difference",
    ((), (1, 1)): "product",
    ((), (1, -1)): "ratio",
}


def _kind(node: Node) -> str:
    """The word for the result of an op without a role: the name of the op; contractions and assemblies, which have
    several ops, have one word for each kind."""
    if isinstance(node.op.lower, Contraction):
        return "product"
    if isinstance(node.op.lower, Assemble):
        return "joined" if len(node.operands) > 1 else "padded"
    return node.op.name


def _shown(v: Value) -> Value:
    """The value, or the window of a value, that v shows, if it has a label; otherwise the base of v."""
    source = _labelled(v)
    return base(v) if source is None or source.index not in source.node.origin.labels else source


def _of_module(name: str) -> Called:
    """The name of a parameter or buffer, which follows the path of its module; or of an input."""
    full, layer = identifier(name), identifier(name.rpartition(".")[0])
    is_inside = "." in name and full.startswith(f"{layer}_")
    return Called(full.removeprefix(f"{layer}_"), layer) if is_inside else Called(full)


def called_state(name: str, modules: Iterable[str]) -> Called:
    """The name of a state; its layer is the longest path of `modules` in the name."""
    inside = [path for path in modules if f".{path}." in f".{name}."]
    layer = max(inside, key=len, default="")
    words = f".{name}.".replace(f".{layer}.", ".", 1) if layer else name
    return Called(identifier(words.strip(".")), identifier(layer) if layer else "")


def _in_layer(scope: str, role: str, layers: Mapping[str, str] | None) -> Called:
    if scope in ("", OPTIMIZER) or layers is None:
        return Called(role)
    return Called(role, identifier(layers.get(scope, scope)))


def _inside(v: Value) -> Value:
    """The value that a node with a region, which is no loop, computes."""
    while v.node.regions and "carries" not in v.node.attrs and v.index not in v.node.origin.labels:
        v = base(v.node.regions[0].results[v.index])
    return v


def _of_region(v: Value, layers: Mapping[str, str] | None) -> Called:
    """A result of a scan: a carry, the old values of one, or a value of the step."""
    node = v.node
    region, carries = node.regions[0], node.attrs["carries"]
    inner = base(region.results[v.index])
    if v.index >= carries and inner not in region.params[:carries]:
        return called(inner, layers)
    given = inner.name if v.index >= carries else region.params[v.index].name
    carry = given or "carry"
    if node.origin.phase == BACKWARD:
        carry = carry.removeprefix("d_")  # of the gradients that the loop carries
    if v.index >= carries:
        carry = f"{carry}_before"
    elif node.origin.phase == BACKWARD:
        carry = f"{carry}_carry"  # the gradient at the time step in hand
    name = _in_layer(node.origin.scope, carry, layers)
    return name.gradient if node.origin.phase == BACKWARD else name
