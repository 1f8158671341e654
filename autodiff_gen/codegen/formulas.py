"""The formulas of loop nests, from the nodes of their regions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..ir.graph import State
from ..ir.identifiers import Scope
from ..ir.node import CONST, Node, Value
from ..ir.op_kinds import (
    ATOM,
    MUL,
    SELECT,
    UNARY,
    Assemble,
    Elementwise,
    Extent,
    Iota,
    Reduce,
    RowContraction,
    View,
    ViewKind,
)
from ..ir.traits import uniform, view_kind
from ..ir.types import normalise_axes, planned_size
from ..lowering.c import c_syntax
from ..lowering.c.c_syntax import shown
from ..lowering.plan import PlannedStep
from .entry_names import Names
from .gradient_calls import gradient_call
from .library_calls import Application, application
from .view_text import joined_axis, view_text, viewed, window

LONGEST = (
    24  # operators and parentheses of a formula; a longer formula is split at the local values of its loops
)
LET = "let "  # begins the line of a local value
SAVES = "; saves "  # after the formula of a result, before other results of the calls in the formula
SAVED = "; from "  # after the formula of a result, before values that calls in the formula saved and the step reads


def plain(literal: str) -> str:
    """A number without C's suffix."""
    return literal[:-1] if literal[-1:] == "f" and literal[-2:-1].isdigit() else literal


def loops_comment(names: Names, step: PlannedStep, locals_: Mapping[Value, str]) -> str:
    """A line for each result: the formula of its elements. A local value has a separate line if it is used several
    times or belongs to a long formula. locals_: the names of local values in the loops."""
    return "\n".join(_Formulas(names, step, locals_).lines())


def of_results(comment: str) -> str:
    """The lines of a comment that are formulas of results, joined to one line."""
    return "; ".join(line for line in comment.split("\n") if not line.startswith(LET))


class _TooLongError(Exception):
    pass


class _Formulas:
    """The results of a loop nest in the order of their dependences. Later formulas use the name of a result or of a
    local value that has a line. After the line of a state's new value, `old name` is its old value.
    """

    def __init__(self, names: Names, step: PlannedStep, locals_: Mapping[Value, str]) -> None:
        self.names, self.locals = names, locals_
        region = step.node.regions[0]
        self.nodes = region.nodes
        self.outer = dict(zip(region.params, step.node.operands, strict=True))
        self.results = dict(zip(region.results, step.node.results, strict=True))
        self.done: dict[Value, str] = {}
        self.renewed: set[State] = set()
        self.out: list[str] = []
        self.is_whole = True  # the formula in hand is not divided
        self.applied: list[Application] = []  # in the formula in hand
        self.told: set[Value] = set()  # values saved by other steps that a line has named already
        computing = (n for n in region.nodes if not isinstance(n.op.lower, View))
        self.uses = Counter(v.base for n in computing for v in n.operands)
        own = (names.bare(names.place(v)) for v in step.node.operands if v.base.node.op is not CONST)
        self.scope = Scope([*own, *map(self._name, step.node.results)])

    def lines(self) -> list[str]:
        position = {n: k for k, n in enumerate(self.nodes)}
        order = sorted(self.results, key=lambda v: (position.get(v.base.node, -1), v.index))
        saved = {n for node in self.nodes if (a := self._application(node)) for n in a.nodes if n is not node}
        for v in order:
            if v.base.node not in saved:
                self._add(v, self.results[v])
        return self.out

    def _add(self, v: Value, result: Value) -> None:
        """The line of a result, after the lines of local values that it needs."""
        state = self.names.plan.states.get(result)
        name = self._name(result)
        try:
            self.is_whole = True
            text = self._assigned(v, name)
        except _TooLongError:
            self.is_whole = False
            text = self._assigned(v, name)
        self.out.append(f"{self._typed(result)} {text}{self._saved(v)}")
        self.done[v.base] = name
        if state is not None:
            self.renewed.add(state)

    def _typed(self, result: Value) -> str:
        return self._name(result) + (shown(result.type.shape) if result.type.shape else "")

    def _saved(self, v: Value) -> str:
        """`; saves mean, inv_std`: other results of the nest that the calls in this formula computed."""
        nodes = {n for a in self.applied for n in a.nodes} - {v.base.node}
        read = self._read()
        self.applied.clear()
        saved = [(u, r) for u, r in self.results.items() if u.base.node in nodes and u.base not in self.done]
        self.done.update((u.base, self._name(r)) for u, r in saved)
        return f"{SAVES}{', '.join(self._typed(r) for _, r in saved)}{read}" if saved else read

    def _read(self, first: int = 0) -> str:
        """`; from mean, inv_std`: values that the step reads, and that calls in the formula saved. first: the index in
        `applied` of the first of these calls."""
        new = {u for a in self.applied[first:] for u in a.saved} - self.told
        self.told |= new
        words = dict.fromkeys(self._name(u.base) for u in self.outer.values() if u.base in new)
        return f"{SAVED}{', '.join(words)}" if words else ""

    def _application(self, node: Node) -> Application | None:
        """The call whose result a node computes, if the call says more than the formula. Otherwise the call whose
        gradient the node computes, if the formula of the gradient is long."""
        found = application(node.results[0], self.outer)
        if found is not None and found.says_more:
            return found
        return gradient_call(node.results[0], self.nodes, self.outer)

    def _assigned(self, v: Value, name: str) -> str:
        """`= formula`; `+= formula` or `-= formula` where the formula changes the value with this name."""
        signs = v.node.op.signs
        if v not in self.outer and len(signs) == 2 and signs[0] == 1 and self._application(v.node) is None:
            first, second = v.node.operands
            if self._operand(first, ATOM) == name:
                return f"{'-=' if signs[1] < 0 else '+='} {self._operand(second, SELECT)}"
        return f"= {self._formula(v)[0]}"

    def _name(self, result: Value) -> str:
        state = self.names.plan.states.get(result)
        return self.names.bare(self.names.place(result) if state is None else self.names.slots[state])

    def _local(self, v: Value) -> str:
        """The name of a local value, which has a line from now on."""
        first = len(self.applied)
        text, _ = self._formula(v)
        read = self._read(first)
        word = self.locals[v]
        if word in self.scope.taken:  # a local of another loop
            word = word.rstrip("0123456789").rstrip("_")
        name = self.scope.fresh(word)
        self.out.append(f"{LET}{name} = {text}{read}")
        self.done[v] = name
        return name

    def _named(self, v: Value, outer: Value | None = None) -> str:
        """The name of a value that has its line already. For a value from outside the loops, which is `outer` or else
        the outer value of v: its number if it shows a constant of one element, otherwise its name with views."""
        if v.base in self.done:
            return self.done[v.base]
        outer = self.outer[v] if outer is None else outer
        source = outer.base
        if (number := uniform(source)) is not None:
            return plain(c_syntax.literal(number, source.type.dtype))
        name = self.names.bare(self.names.place(outer))
        is_old = source not in self.names.args and self.names.plan.states.get(source) in self.renewed
        return viewed(outer, f"old {name}" if is_old else name)

    def _formula(self, v: Value, is_top: bool = True) -> tuple[str, int]:
        """The text, and the precedence of its outermost operator."""
        is_shown = v.base in self.done and view_kind(v.node) is not ViewKind.PERMUTE
        if v in self.outer or (is_shown and not is_top):
            text = self._named(v)
            return text, UNARY if text.startswith(("-", "old ")) else ATOM
        if v in self.locals and not is_top and (not self.is_whole or self.uses[v] > 1):
            return self._local(v), ATOM
        node, lower = v.node, v.node.op.lower
        applied = self._application(node)
        if applied is not None:
            self.applied.append(applied)
            return self._checked(applied.text(lambda u: self._argument(u, applied))), ATOM
        if isinstance(lower, View):
            text, precedence = self._formula(node.operands[0], is_top)
            viewed = view_text(node, text)
            return viewed, precedence if viewed == text else ATOM
        if node.op is CONST:
            text = plain(c_syntax.literal(node.attrs["value"].reshape(-1)[0], v.type.dtype))
            return text, UNARY if text.startswith("-") else ATOM
        if isinstance(lower, Extent):
            text = c_syntax.extent(node.attrs["extent"])
            return text, ATOM if text.isalnum() else MUL
        if isinstance(lower, Iota):
            return "index", ATOM
        if isinstance(lower, RowContraction):
            return " . ".join(self._operand(o, ATOM) for o in node.operands), MUL
        if isinstance(lower, Elementwise):
            return self._elementwise(node, lower)
        if isinstance(lower, Assemble):
            return self._checked(self._assembled(node)), ATOM
        sides = _factors(node)
        if sides is not None:
            return self._checked(" . ".join(map(self._side, sides))), MUL
        arguments = [self._operand(o, SELECT) for o in node.operands]
        name = node.op.name
        if isinstance(lower, Reduce):
            name += "_at" if v.index else ""
            shape = node.operands[0].type.shape
            axes = normalise_axes(node.attrs["axes"], len(shape))
            if any(k not in axes and d != 1 for k, d in enumerate(shape)):
                over = axes[0] if len(axes) == 1 else tuple(sorted(axes))
                arguments.append(f"axis={over}")
        return self._checked(f"{name}({', '.join(arguments)})"), ATOM

    def _assembled(self, node: Node) -> str:
        """`cat(a, b, axis=1)`, or parts with their windows: `assemble([..., 1:3] = a, 0.0 elsewhere)`."""
        shape, fill = node.results[0].type.shape, node.attrs["fill"]
        parts = list(zip(node.operands, node.attrs["starts"], node.attrs["steps"], strict=True))
        axis = joined_axis(node)
        if axis is not None:
            parts.sort(key=lambda part: part[1][axis])
            return f"cat({', '.join(self._operand(v, SELECT) for v, _, _ in parts)}, axis={axis})"
        windows = [window(starts, steps, v.type.shape, shape) for v, starts, steps in parts]
        texts = [f"{w} = {self._operand(v, SELECT)}" for (v, _, _), w in zip(parts, windows, strict=True)]
        whole = sum(planned_size(v.type.shape) for v, _, _ in parts) == planned_size(shape)
        rest = [] if whole else [f"{plain(c_syntax.literal(fill, node.results[0].type.dtype))} elsewhere"]
        return f"assemble({', '.join([*texts, *rest])})"

    def _elementwise(self, node: Node, lower: Elementwise) -> tuple[str, int]:
        count = len(node.operands)
        from_integers = node.operands[0].type.dtype.kind in "iub" and node.results[0].type.dtype.kind in "iuf"
        if lower.is_identity or (lower.converts and from_integers):
            return self._formula(node.operands[0], False)
        needs = lower.operand_precedence
        per_operand = needs if isinstance(needs, tuple) else (needs,) * count
        divided = self._divided(node)
        if divided is not None:
            x, y = divided
            return self._checked(f"{self._operand(x, MUL)} / {self._operand(y, ATOM)}"), MUL
        if lower.is_operator:
            texts = [self._operand(o, need) for o, need in zip(node.operands, per_operand, strict=True)]
            if node.op.signs == (1, 1) and texts[1].startswith("-"):
                return self._checked(f"{texts[0]} - {texts[1][1:]}"), lower.precedence
            return self._checked(lower.c.format(*texts)), lower.precedence
        texts = [self._operand(o, SELECT) for o in node.operands]
        numbers = [plain(c_syntax.attribute(x)) for k, x in node.attrs.items() if f"{{{k}}}" in lower.c]
        return self._checked(f"{node.op.name}({', '.join([*texts, *numbers])})"), ATOM

    def _divided(self, node: Node) -> tuple[Value, Value] | None:
        """x and y of x * (1 / y)."""
        for k, inverse in enumerate(node.operands if node.op.powers == (1, 1) else ()):
            while isinstance(inverse.node.op.lower, View) and planned_size(inverse.base.type.shape) == 1:
                inverse = inverse.node.operands[0]
            op = inverse.node.op
            if (
                op.powers == (1, -1)
                and uniform(inverse.node.operands[0]) == 1
                and not self._has_name(inverse)
            ):
                return node.operands[1 - k], inverse.node.operands[1]
        return None

    def _has_name(self, v: Value) -> bool:
        """Whether a formula has the name of v in it, and not the formula of v."""
        is_local = v in self.locals and (not self.is_whole or self.uses[v] > 1)
        return v in self.outer or v.base in self.done or is_local

    def _argument(self, v: Value, applied: Application) -> str:
        return self._named(v, applied.stored[v]) if v in applied.stored else self._operand(v, SELECT)

    def _operand(self, v: Value, need: int) -> str:
        text, precedence = self._formula(v, False)
        return f"({text})" if precedence < need else text

    def _side(self, v: Value) -> str:
        """One side of a product, without the axis of extent 1 that lines it up with the other."""
        v = _matrix(v)
        return self._named(v, _matrix(self.outer[v])) if v in self.outer else self._operand(v, ATOM)

    def _checked(self, text: str) -> str:
        if self.is_whole and text.count(" ") + text.count("(") > LONGEST:
            raise _TooLongError
        return text


def _factors(node: Node) -> tuple[Value, Value] | None:
    """Both sides of a product of matrices that is written as a sum: of a[m, k, 1] * b[1, k, n] over k."""
    lower = node.op.lower
    if not isinstance(lower, Reduce) or not lower.sums:
        return None
    (x,) = node.operands
    if x.node.op.powers != (1, 1):
        return None
    a, b = x.node.operands
    shapes = [v.type.shape for v in (a, b, x)]
    if [len(s) for s in shapes] != [3, 3, 3] or shapes[0][2] != 1 or shapes[1][0] != 1:
        return None
    return (a, b) if normalise_axes(node.attrs["axes"], 3) == (1,) and shapes[0][1] == shapes[1][1] else None


def _matrix(v: Value) -> Value:
    """The operand of views that add axes to a matrix."""
    while isinstance(v.node.op.lower, View) and len(v.type.shape) > 2:
        v = v.node.operands[0]
    return v
