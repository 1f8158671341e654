"""The body of one entry function as C lines: named pointers into the arena, then numbered calls and loops."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from ..ir.graph import State
from ..ir.identifiers import Scope
from ..ir.kernel_call import Factor, KernelCall, Operand, Place, Result
from ..ir.node import CONST, INPUT, STATE, Node, Value, base
from ..ir.op_kinds import Call, Contraction, View, ViewKind
from ..ir.strides import Strided
from ..ir.types import Size, Type
from ..ir.views import layout, stored
from ..kernels.contract import CONTRACT, STRUCTS
from ..kernels.table import Kernel
from ..lowering import c_syntax
from ..lowering.c_syntax import plus, shown
from ..lowering.loop_text import LoopText
from ..lowering.plan import EntryPlan, Placed, Step
from ..lowering.statements import LOOP_NAMES
from .control_flow import Inside, Pointer, region_lines
from .kernel_call import statement

WIDTH = 108


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
        inside: Inside | None = None,
    ) -> None:
        self.plan, self.args, self.slots, self.tables = plan, args, slots, tables
        self.inside = inside or Inside()
        self.scope = Scope([*self.inside.taken, *args.values(), *outputs.values(), *tables.values()])
        self.names: dict[Value, str] = {v: outputs[name] for v, name in plan.outputs.items()}
        self.scratch: dict[tuple[Step, Value], str] = {}
        self.geometry = ""  # what tables of geometry are called, once there is one
        self.pointers: list[Pointer] = []
        for buffer in plan.placed:
            self._declare(buffer)

    def nested(
        self,
        plan: EntryPlan,
        args: Mapping[Value, str],
        outputs: Mapping[str, str],
        slots: Mapping[State, str],
        inside: Inside,
    ) -> EntryText:
        """The text of a region of a step of this entry."""
        return type(self)(plan, args, outputs, slots, self.tables, inside)

    # Names

    def _declare(self, buffer: Placed) -> None:
        first, last = self.number(buffer.start), self.number(buffer.end)
        ends = f"step {first}" if first == last else f"steps {first} to {last}"
        for k, v in enumerate(buffer.values):
            name = self.scope.fresh(hint(v) if buffer.owner is None else f"{hint(v)}_row")
            shape = v.type.shape
            if buffer.owner is not None:
                assert buffer.owner.nest is not None
                shape = buffer.owner.nest.scratch[v].shape
            note = ends if k == 0 else f"in place of {self.bare(self.names[buffer.values[k - 1]])}"
            place = self._point(name, Type(v.type.dtype, shape), buffer, note)
            if buffer.owner is None:
                self.names[v] = place
            else:
                self.scratch[buffer.owner, v] = place

    def _point(self, name: str, type: Type, buffer: Placed, note: str) -> str:
        """Declare `name` for bytes of the arena; what stands for it in the code."""
        c_type, words = type.dtype.c, (self.inside.offsets.get(buffer.pool, 0) + buffer.offset) // 4
        arena = "int_arena" if buffer.pool == "int" else "arena"
        start = f"t->{arena} + {words}" if words else f"t->{arena}"
        if c_type not in ("float", "int32_t"):
            start = f"({c_type} *)({start})"
        self.pointers.append(Pointer(f"{c_type} *const {name} = {start};", f"{shown(type.shape)} {note}"))
        return name

    def number(self, number: int) -> str:
        return f"{self.inside.prefix}{self.inside.start + number}"

    def _state(self, state: State) -> str:
        """The memory of a state."""
        return self.slots[state] if self.plan.graph.inner else f"t->{self.slots[state]}"

    def bare(self, place: str) -> str:
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
        name = self.bare(self.place(v))
        swaps, at = 0, v
        while isinstance(at.node.op.lower, View):
            swaps += at.node.op.lower.kind is ViewKind.PERMUTE
            at = at.node.operands[0]
        return name + ("'" if swaps % 2 else "")

    # Steps

    def lines(self, step: Step) -> list[str]:
        """The step's comment, its mark if it has one, and what it does."""
        comment, *lines = self._lines(step)
        mark = self.inside.marks.get(self.number(step.number))
        return [comment, *([] if mark is None else [f"AG_MARK({mark});"]), *lines]

    def _lines(self, step: Step) -> list[str]:
        if step.inner is not None:
            return region_lines(self, step)
        if step.nest is not None:
            return [self.comment(step.number, self._fused_comment(step)), *self._loops(step)]
        return [self.comment(step.number, self._call_comment(step)), *self._call(step)]

    def comment(self, number: int, text: str) -> str:
        line = f"/* {self.number(number):<2} {text} */"
        line = line if len(line) <= WIDTH else line[: WIDTH - 6] + "... */"
        self.inside.said[self.number(number)] = line[3:-3].partition(" ")[2].strip()
        return line

    def _fused_comment(self, step: Step) -> str:
        parts = []
        for r in step.node.results:
            state = self.plan.states.get(r)
            parts.append(
                f"new {self.bare(self._state(state))}" if state is not None else self.bare(self.names[r])
            )
            parts[-1] += shown(r.type.shape) if r.type.shape else ""
        return ", ".join(parts)

    def _call_comment(self, step: Step) -> str:
        node, lower = step.node, step.node.op.lower
        assert isinstance(lower, Call | Contraction)
        scalars = lower.scalars if isinstance(lower, Call) else ()
        last = len(node.operands) if lower.into is None else lower.into
        terms = [
            self.scalar(v) if i in scalars else self.short(v) for i, v in enumerate(node.operands[:last])
        ]
        what = " . ".join(terms)
        if isinstance(lower, Call):
            name = lower.term if lower.into is not None else node.op.name
            what = f"{name}({', '.join(terms)})" if name else terms[0]
        target = ", ".join(f"{self.bare(self.place(r))}{shown(r.type.shape)}" for r in node.results)
        if lower.into is None:
            return f"{target} = {what}"
        alpha = self.scalar(node.operands[lower.into + 1])
        factor = "" if alpha in ("1.0f", "-1.0f") else f"{alpha} "
        sign = "-" if node.attrs["negate"] else "+"
        beta = node.attrs["beta"]
        if beta == 1.0:
            return f"{target} {sign}= {factor}{what}"
        return f"{target} = {c_syntax.float_literal(beta)} * itself {sign} {factor}{what}"

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
                return stored(v)
            return None if self.by_value(outer[v]) else layout(outer[v])

        def row_call(node: Node, row: str, target: str, offset: Sequence[str]) -> list[str]:
            a, b = (outer[v] for v in node.operands)
            at_a, at_b = layout(a), layout(b)
            assert at_a is not None and at_b is not None
            start, lines = plus(self.place(a), c_syntax.offset(at_a.offset, [(row, at_a.strides[0])])), []
            if node in step.gathered:
                factor = step.gathered[node]
                start = self.scratch[step, factor]
                lines = self._gathered(start, factor.type.shape[0], self.place(a), at_a, row)
            places = [start, plus(self.place(b), c_syntax.offset(at_b.offset, []))]
            call, kernel = step.calls[node]
            values = {
                p: places[role.index] if isinstance(role, Operand) else plus(target, offset)
                for p, role in call.pointers.items()
            }
            return [*lines, *self._statement(call, kernel, values, node)]

        text = LoopText(nest, step.locked)
        lines = text.render(place, layout_of, row_call, self.scope.taken)
        if any(line.startswith(("float ", "const ", "int32_t ", "uint32_t ")) for line in lines):
            lines = ["{", *("    " + line for line in lines), "}"]
        return lines

    def _gathered(self, target: str, count: Size, source: str, at: Strided, row: str) -> list[str]:
        """The loop that collects one row of a matrix whose rows are no runs of memory."""
        k = next(name for name in LOOP_NAMES if name != row)
        index = c_syntax.index(c_syntax.offset(at.offset, [(row, at.strides[0]), (k, at.strides[1])]))
        return [
            f"for (int32_t {k} = 0; {k} < {c_syntax.extent(count)}; {k}++) {{",
            f"    {c_syntax.element(target, k)} = {c_syntax.element(source, index)};",
            "}",
        ]

    def _call(self, step: Step) -> list[str]:
        node = step.node
        call, kernel = step.calls[node]
        extents = node.results[0].type.shape
        loops = [(LOOP_NAMES[k], i) for k, i in enumerate(call.over)]
        pointers = {p: self._start(node, role, loops) for p, role in call.pointers.items()}
        lines = self._statement(call, kernel, pointers, node)
        for var, i in reversed(loops):
            head = f"for (int32_t {var} = 0; {var} < {c_syntax.extent(extents[i])}; {var}++) {{"
            lines = [head, *("    " + line for line in lines), "}"]
        return lines

    def _start(self, node: Node, role: Place, loops: list[tuple[str, int]]) -> str:
        """Where an operand or result of a call begins."""
        if isinstance(role, Result):
            v = node.results[role.index]
            at: Strided | None = stored(v)
        else:
            v = node.operands[role.index]
            at = layout(v)
        assert at is not None
        return plus(self.place(v), c_syntax.offset(at.offset, [(var, at.strides[i]) for var, i in loops]))

    def _statement(
        self, call: KernelCall, kernel: Kernel, pointers: Mapping[str, str], node: Node
    ) -> list[str]:
        """The call itself; geometry stands before it as a table."""
        values = dict(pointers)
        values.update((k, c_syntax.extent(v)) for k, v in call.sizes.items())
        values.update((k, self._factor(v, node)) for k, v in call.factors.items())
        struct = next((p for p in CONTRACT[call.kernel].params if p.struct), None)
        if struct is None:
            return [statement(call, kernel.symbol, values)]
        if not self.geometry:
            self.geometry = self.scope.fresh("shape")
        fields = ", ".join(f".{k}\0=\0{call.shape[k]}" for k in STRUCTS[struct.struct or ""])
        head = f"static const ag_{struct.struct} {self.geometry} = {{"
        table = [
            line.replace("\0", " ") for line in textwrap.wrap(fields, WIDTH - 12, break_on_hyphens=False)
        ]
        values[struct.name] = f"&{self.geometry}"
        inner = [head, *("    " + line for line in table), "};", statement(call, kernel.symbol, values)]
        return ["{", *("    " + line for line in inner), "}"]

    def _factor(self, factor: Factor, node: Node) -> str:
        if isinstance(factor, float):
            return c_syntax.float_literal(factor)
        text = self.scalar(node.operands[factor.index])
        if not factor.negate:
            return text
        return text.removeprefix("-") if text.startswith("-") else f"-{text}"

    def scalar(self, v: Value) -> str:
        source = base(v)
        if source.node.op is CONST:
            return c_syntax.literal(source.node.attrs["value"].reshape(-1)[0], v.type.dtype)
        return self.place(v) if self.by_value(v) else c_syntax.element(self.place(v), "0")


def hint(v: Value) -> str:
    """What to call a value: the name it was given on the way, else its op's."""
    node = v.node
    if node.regions:
        region, carries = node.regions[0], node.attrs.get("carries", 0)
        if v.index < carries:
            node = region.params[v.index].node
        elif region.results[v.index] in region.params[:carries]:
            return f"{region.results[v.index].node.hint}_before"
        else:
            node = base(region.results[v.index]).node
    return node.hint or node.op.name
