"""The body of one entry function as a C tree: numbered calls and loops, after the pointers that each uses first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..ir.graph import State
from ..ir.kernel_call import Epilogue, Factor, KernelCall, Operand, Place, Result
from ..ir.node import Node, Value
from ..ir.op_kinds import RowContraction
from ..ir.strides import Strided
from ..ir.types import Size
from ..ir.views import layout, stored
from ..kernels.contract import SCRATCH
from ..kernels.table import Kernel
from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from ..lowering.loops.c_tree import LoopTree
from ..lowering.loops.statements import LOOP_NAMES
from ..lowering.plan import EntryPlan, PlannedStep
from .call_statement import statement
from .comments import call_comment
from .control_flow import region_statements
from .convolution_structs import geometry_of, struct_of, table
from .entry_names import Inside, Names
from .formulas import loops_comment


class EntryBody(Names):
    """The statements of one entry."""

    def _nested(
        self,
        plan: EntryPlan,
        args: Mapping[Value, c.Expr],
        outputs: Mapping[str, c.Expr],
        slots: Mapping[State, c.Expr],
        inside: Inside,
    ) -> Callable[[PlannedStep], list[c.Statement]]:
        """A function that gives the statements of a step of a region of this entry."""
        rest = self.tables, inside, self.geometry, self.layers, self.poison, self.arenas
        body = type(self)(plan, args, outputs, slots, *rest)
        return lambda step: [*body.statements(step), *body.freed(step)]

    def freed(self, step: PlannedStep) -> list[c.Statement]:
        """With `poison`, statements that fill the memory that is not used after a step."""
        ended = [b for b in self.plan.placed if b.end == step.number] if self.poison else []
        kept = {b.over: (b.bytes + 3) // 4 * 4 for b in self.plan.placed}
        return [
            poisoned(self.start_of(b, kept.get(b, 0)), size)
            for b in ended
            if (size := b.bytes - kept.get(b, 0)) > 0
        ]

    def statements(self, step: PlannedStep) -> list[c.Statement]:
        """The step's comment, the pointers that are first used in it, and its statements."""
        comment, *body = self._statements(step)
        return [comment, *self.pointers.get(step.number, ()), *body]

    def _statements(self, step: PlannedStep) -> list[c.Statement]:
        if step.inner is not None:
            return region_statements(self, step, self._nested)
        number = self.number(step.number)
        if step.nest is not None:
            tree = self._loops(step)
            return [c.Comment(loops_comment(self, step, tree.called), number), *c.braced(tree.top)]
        return [c.Comment(call_comment(self, step.node, step.calls[step.node][0]), number), *self._call(step)]

    def _loops(self, step: PlannedStep) -> LoopTree:
        assert step.nest is not None and step.statements is not None
        nest, region = step.nest, step.nest.region
        outer = dict(zip(region.params, step.node.operands, strict=True))
        outer.update(zip(region.results, step.node.results, strict=True))

        def place(v: Value) -> c.Expr:
            return self.scratch[step, step.own.get(v, v)] if v in nest.scratch else self.place(outer[v])

        def layout_of(v: Value) -> Strided | None:
            if v in region.results:
                return stored(v)
            return None if self.by_value(outer[v]) else layout(outer[v])

        def row_call(
            node: Node,
            row: c.Expr | None,
            column: c.Expr | None,
            target: c.Expr,
            offset: Sequence[c.Expr],
        ) -> list[c.Statement]:
            a, b = (outer[v] for v in node.operands)
            at_a, at_b = layout(a), layout(b)
            assert at_a is not None and at_b is not None
            out: list[c.Statement] = []
            start = c.plus(self.place(a), c_syntax.offset(at_a.offset, [(row, at_a.strides[0])]))
            if node in step.gathered:
                factor = step.gathered[node]
                start = self.scratch[step, factor]
                out.append(self._gathered(start, factor.type.shape[0], self.place(a), at_a, row))
            assert isinstance(node.op.lower, RowContraction)
            moving = (row, at_b.strides[-1]) if node.op.lower.by_channel else (column, at_b.strides[1])
            places = [start, c.plus(self.place(b), c_syntax.offset(at_b.offset, [moving]))]
            call, kernel = step.calls[node]
            values = {
                p: places[role.index] if isinstance(role, Operand) else c.plus(target, offset)
                for p, role in call.pointers.items()
            }
            return [*out, self._statement(call, kernel, values | self._memory(step, node), node)]

        names = self.scope.taken
        known = self.memories, self.called
        return LoopTree(step.statements, place, *known, layout_of, row_call, outer, names, step.own)

    def _gathered(
        self, target: c.Expr, count: Size, source: c.Expr, at: Strided, row: c.Expr | None
    ) -> c.Statement:
        """The loop that collects one row of a matrix whose rows are not contiguous."""
        k = next(c.Name(name) for name in LOOP_NAMES if c.Name(name) != row)
        read = self.element(source, at.offset, [(row, at.strides[0]), (k, at.strides[1])])
        body = c.Assign(self.element(target, 0, [(k, 1)]), read)
        return c.For(k.text, c_syntax.size(count), (body,), extent=count)

    def _memory(self, step: PlannedStep, node: Node) -> dict[str, c.Expr]:
        """Scratch memory of the kernel that computes a node of the step."""
        return {SCRATCH: self.scratch[step, step.memory[node]]} if node in step.memory else {}

    def _call(self, step: PlannedStep) -> list[c.Statement]:
        node = step.node
        call, kernel = step.calls[node]
        extents = node.results[0].type.shape
        loops = [(LOOP_NAMES[k], i) for k, i in enumerate(call.over)]
        pointers = {p: self._start(node, role, loops) for p, role in call.pointers.items()}
        pointers |= self._memory(step, node)
        if call.epilogue is not None:
            pointers["epilogue"] = c.Unary("&", c.Name("epilogue"))
        statement = self._statement(call, kernel, pointers, node)
        if call.epilogue is not None:
            statement = c.Block((self._epilogue(node, call.epilogue, loops), statement))
        for var, i in reversed(loops):
            statement = c.For(var, c_syntax.size(extents[i]), (statement,), extent=extents[i])
        return [statement]

    def _epilogue(self, node: Node, epilogue: Epilogue, loops: list[tuple[str, int]]) -> c.Declare:
        """The struct `epilogue`, local to its call; of its operands only the residual has the axes of the loops."""
        fields = [
            (name, self._start(node, role, loops if role is epilogue.residual else []))
            for name, role in epilogue.pointers.items()
        ]
        limits = [("low", epilogue.low), ("high", epilogue.high)] if epilogue.low < epilogue.high else []
        fields += [(name, c.Literal(c_syntax.float_literal(limit))) for name, limit in limits]
        return c.declare("ag_epilogue", "epilogue", c.Initializer(tuple(fields)), const=True)

    def _start(self, node: Node, role: Place, loops: list[tuple[str, int]]) -> c.Expr:
        """Where an operand or result of a call begins."""
        if isinstance(role, Result):
            v = node.results[role.index]
            at: Strided | None = stored(v)
        else:
            v = node.operands[role.index]
            at = layout(v)
        assert at is not None
        steps = [(c.Name(var), at.strides[i]) for var, i in loops]
        return c.plus(self.place(v), c_syntax.offset(at.offset, steps))

    def _statement(
        self, call: KernelCall, kernel: Kernel, pointers: Mapping[str, c.Expr], node: Node
    ) -> c.Statement:
        """The call itself, after a table with its geometry where none at file scope has it."""
        values = dict(pointers)
        values.update((k, c_syntax.size(v)) for k, v in call.sizes.items())
        values.update((k, self._factor(v, node)) for k, v in call.factors.items())
        struct = struct_of(call)
        if struct is None or not struct.struct:
            return statement(call, kernel.symbol, values)
        geometry = geometry_of(call, struct.struct)
        name = self.geometry.get(geometry, "shape")
        values[struct.name] = c.Unary("&", c.Name(name))
        made = statement(call, kernel.symbol, values)
        return made if geometry in self.geometry else c.Block((table(geometry, name), made))

    def _factor(self, factor: Factor, node: Node) -> c.Expr:
        if isinstance(factor, float):
            return c.Literal(c_syntax.float_literal(factor))
        value = self.scalar(node.operands[factor.index])
        return _negative(value) if factor.negate else value


POISON = "ag_poison"  # runtime/ag_poison.h


def poisoned(start: c.Expr, bytes: int) -> c.Statement:
    """A call that fills memory with NaN."""
    return c.ExprStatement(c.Call(POISON, (start, c.number((bytes + 3) // 4))))


def _negative(value: c.Expr) -> c.Expr:
    if not isinstance(value, c.Literal):
        return c.Unary("-", value)
    text = value.text
    return c.Literal(text.removeprefix("-") if text.startswith("-") else f"-{text}")
