"""The body of one entry function as C lines: named pointers into the arena, then numbered calls and loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import c_text
from .backends import Kernel
from .dtypes import Type
from .gemm_calls import GemmCall
from .ir import CONST, INPUT, STATE, Node, State, Value
from .layout import Strided, base, dense, layout
from .loop_statements import LOOP_NAMES
from .loop_text import LoopText
from .names import Scope
from .op import View
from .steps import EntryPlan, Placed, Step

WIDTH = 108


@dataclass(frozen=True)
class Pointer:
    """A declaration `type *const name = t->arena + offset;` with its comment."""

    text: str
    comment: str


class EntryText:
    """Names and lines of one entry. `args` maps the graph's inputs to C names, `outputs` the outputs' names
    to C names, `slots` states to members of the struct, `tables` constant arrays to the names of their
    tables.
    """

    def __init__(
        self,
        plan: EntryPlan,
        args: Mapping[Value, str],
        outputs: Mapping[str, str],
        slots: Mapping[State, str],
        tables: Mapping[Value, str],
    ) -> None:
        self.plan, self.args, self.slots, self.tables = plan, args, slots, tables
        self.scope = Scope([*args.values(), *outputs.values(), *tables.values()])
        self.names: dict[Value, str] = {v: outputs[name] for v, name in plan.outputs.items()}
        self.scratch: dict[tuple[Step, Value], str] = {}
        self.pointers: list[Pointer] = []
        for buffer in plan.placed:
            self._declare(buffer)

    # Names

    def _declare(self, buffer: Placed) -> None:
        ends = (
            f"step {buffer.start}" if buffer.start == buffer.end else f"steps {buffer.start} to {buffer.end}"
        )
        for k, v in enumerate(buffer.values):
            name = self.scope.fresh(hint(v) if buffer.owner is None else f"{hint(v)}_row")
            shape = v.type.shape
            if buffer.owner is not None:
                assert buffer.owner.nest is not None
                shape = buffer.owner.nest.scratch[v].shape
            note = ends if k == 0 else f"in place of {self._bare(self.names[buffer.values[k - 1]])}"
            place = self._point(name, Type(v.type.dtype, shape), buffer, note)
            if buffer.owner is None:
                self.names[v] = place
            else:
                self.scratch[buffer.owner, v] = place

    def _point(self, name: str, type: Type, buffer: Placed, note: str) -> str:
        """Declare `name` for bytes of the arena; what stands for it in the code."""
        c_type, words = type.dtype.c, buffer.offset // 4
        arena = "int_arena" if buffer.pool == "int" else "arena"
        start = f"t->{arena} + {words}" if words else f"t->{arena}"
        if c_type not in ("float", "int32_t"):
            start = f"({c_type} *)({start})"
        self.pointers.append(Pointer(f"{c_type} *const {name} = {start};", f"{shown(type.shape)} {note}"))
        return name

    def _state(self, state: State) -> str:
        """The memory of a state."""
        return f"t->{self.slots[state]}"

    def _bare(self, place: str) -> str:
        """A place as comments call it."""
        return place.removeprefix("t->")

    def place(self, v: Value) -> str:
        """The C name of the memory in which base(v) lies."""
        source = base(v)
        if source in self.args:
            return self.args[source]
        if source in self.plan.states:
            return self._state(self.plan.states[source])
        if source.node.op is CONST:
            return self.tables[source]
        return self.names[source]

    def by_value(self, v: Value) -> bool:
        source = base(v)
        return source in self.args and source.type.shape == () and source.node.op in (INPUT, STATE)

    def short(self, v: Value) -> str:
        """A value's name in a comment, with a prime for a transpose."""
        name = self._bare(self.place(v))
        swaps, at = 0, v
        while isinstance(at.node.op.lower, View):
            swaps += at.node.op.name == "permute"
            at = at.node.operands[0]
        return name + ("'" if swaps % 2 else "")

    # Steps

    def lines(self, step: Step) -> list[str]:
        if step.nest is not None:
            return [self._comment(step.number, self._fused_comment(step)), *self._loops(step)]
        return [self._comment(step.number, self._call_comment(step)), *self._call(step)]

    def _comment(self, number: int, text: str) -> str:
        line = f"/* {number:<2} {text} */"
        return line if len(line) <= WIDTH else line[: WIDTH - 6] + "... */"

    def _fused_comment(self, step: Step) -> str:
        parts = []
        for r in step.node.results:
            state = self.plan.states.get(r)
            parts.append(f"new {self.slots[state]}" if state is not None else self._bare(self.names[r]))
            parts[-1] += shown(r.type.shape) if r.type.shape else ""
        return ", ".join(parts)

    def _call_comment(self, step: Step) -> str:
        node = step.node
        a, b = (self.short(v) for v in node.operands[:2])
        (r,) = node.results
        target = f"{self._bare(self.place(r))}{shown(r.type.shape)}"
        if node.op.name != "accumulate":
            return f"{target} = {a} . {b}"
        alpha = self._scalar(node.operands[3])
        factor = "" if alpha in ("1.0f", "-1.0f") else f"{alpha} "
        sign = "-" if node.attrs["negate"] else "+"
        beta = node.attrs["beta"]
        if beta == 1.0:
            return f"{target} {sign}= {factor}{a} . {b}"
        return f"{target} = {c_text.float_literal(beta)} * itself {sign} {factor}{a} . {b}"

    def _loops(self, step: Step) -> list[str]:
        assert step.nest is not None
        region = step.node.regions[0]
        outer = dict(zip(region.params, step.node.operands, strict=True))
        outer.update(zip(region.results, step.node.results, strict=True))
        nest = step.nest

        def place(v: Value) -> str:
            return self.scratch[step, v] if v in nest.scratch else self.place(outer[v])

        def layout_of(v: Value) -> Strided | None:
            if v in region.results:
                return dense(v.type.shape)
            return None if self.by_value(outer[v]) else layout(outer[v])

        def row_call(node: Node, row: str, target: str, offset: str) -> list[str]:
            a, b = (outer[v] for v in node.operands)
            at_a, at_b = layout(a), layout(b)
            assert at_a is not None and at_b is not None
            start = _plus(self.place(a), _sum(at_a.offset, [(row, at_a.strides[0])]))
            pointers = {
                "a": start,
                "b": _plus(self.place(b), _sum(at_b.offset, [])),
                "c": _plus(target, offset),
            }
            call, kernel = step.calls[node]
            return [_call_text(call, kernel, pointers, "1.0f", "0.0f")]

        text = LoopText(nest, step.locked)
        lines = text.render(place, layout_of, row_call, self.scope.taken)
        if any(line.startswith(("float ", "const ", "int32_t ", "uint32_t ")) for line in lines):
            lines = ["{", *("    " + line for line in lines), "}"]
        return lines

    def _call(self, step: Step) -> list[str]:
        node = step.node
        (r,) = node.results
        call, kernel = step.calls[node]
        operands = {"a": node.operands[0], "b": node.operands[1], "c": r}
        at: dict[str, Strided] = {}
        for role, v in operands.items():
            found = dense(v.type.shape) if role == "c" else layout(v)
            assert found is not None
            at[role] = found
        leading = [i for i, d in enumerate(r.type.shape[:-2]) if d != 1]
        loops = [(LOOP_NAMES[k], i) for k, i in enumerate(leading)]
        pointers = {
            role: _plus(
                self.place(v), _sum(at[role].offset, [(var, at[role].strides[i]) for var, i in loops])
            )
            for role, v in operands.items()
        }
        alpha, beta = "1.0f", "0.0f"
        if node.op.name == "accumulate":
            alpha = self._scalar(node.operands[3])
            alpha = (
                (alpha.removeprefix("-") if alpha.startswith("-") else f"-{alpha}")
                if node.attrs["negate"]
                else alpha
            )
            beta = c_text.float_literal(node.attrs["beta"])
        lines = [_call_text(call, kernel, pointers, alpha, beta)]
        for var, i in reversed(loops):
            head = f"for (int32_t {var} = 0; {var} < {c_text.extent(r.type.shape[i])}; {var}++) {{"
            lines = [head, *("    " + line for line in lines), "}"]
        return lines

    def _scalar(self, v: Value) -> str:
        source = base(v)
        if source.node.op is CONST:
            return c_text.literal(source.node.attrs["value"].reshape(-1)[0], v.type.dtype)
        return self.place(v) if self.by_value(v) else c_text.element(self.place(v), "0")


def hint(v: Value) -> str:
    """What to call a value: the name it was given on the way, else its op's."""
    node = v.node
    if node.regions:
        node = base(node.regions[0].results[v.index]).node
    return node.hint or node.op.name


def shown(shape: tuple[object, ...]) -> str:
    """A shape in a comment."""
    return f"[{','.join(map(repr, shape))}]" if shape else "scalar"


def _sum(offset: int, terms: list[tuple[str, int]]) -> str:
    parts = [str(offset)] if offset else []
    parts += [var if step == 1 else f"{var} * {step}" for var, step in terms if step and var != "0"]
    return " + ".join(parts)


def _plus(pointer: str, offset: str) -> str:
    return f"{pointer} + {offset}" if offset else pointer


def _call_text(call: GemmCall, kernel: Kernel, pointers: Mapping[str, str], alpha: str, beta: str) -> str:
    sizes = {k: c_text.extent(v) for k, v in call.sizes.items()}
    return call.text(kernel.symbol, pointers, alpha, beta, sizes)
