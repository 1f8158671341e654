"""An estimate of the instructions that an entry executes, counted on its generated C by the board's cost table.

The trees of the C are traversed in the order of execution, with the largest batch. The table has the cost of a load, a
store, an operation on a float and an iteration. Indices are assumed to be pointers that a compiler moves. Local arrays
and the operands of block instructions are in registers. The table has the cost of a kernel by its symbol
(kernels/call_cost.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..kernels.call_cost import call_cost
from ..kernels.contract import CONTRACT
from ..lowering.c import c_ast as c
from ..lowering.c import c_query
from ..lowering.loops.block_moves import COPY, FILL
from ..targets.cost_table import CostTable
from .executed_trees import SELECT, array_of, coefficient, is_product, operators, stores, value_of
from .program import Program
from .source import Source, source_of

OWN = 18  # operations of exp, tanh, ... where a backend replaces them
FUNCTION = 40  # operations of exp, tanh, ... of ag_math.h, on every core
UNROLLED = 16  # iterations of an innermost loop that compilers write out
CALL = 12  # instructions around a function of loops: arguments, registers that are saved
_MOVED = {COPY: 5 / 8, FILL: 4 / 8}  # instructions for a float
_RELU, _LIMITED = 7 / 4, 19 / 4  # instructions for a float that is stored between limits
Numbers = Mapping[str, float]


def instructions(program: Program) -> dict[str, float]:
    """The estimate for each entry by its name, without the checks of its arguments."""
    return {name: total for name, (total, _) in instructions_by_step(program).items()}


def instructions_by_step(program: Program) -> dict[str, tuple[float, dict[str, float]]]:
    """For each entry by its name: the instructions of all steps, and the instructions of each step by its number. A
    step that contains other steps has only the instructions outside of them."""
    source, found = source_of(program, {}, False), {}
    for code in source.codes:
        counter = _Counter(program, source)
        total = counter.of(tuple(s for step in code.steps for s in step))
        # only the more expensive side of a branch is in the total, so that the step around it may be negative
        found[code.entry.name] = total, {step: max(0.0, count) for step, count in counter.steps.items()}
    return found


@dataclass
class _Loop:
    """A loop: `times` iterations of `variable`, unrolled by compilers if it `is_short`. stores: whether its iterations
    store to memory; depends: the variables of loops that stay loops on which `variable` depends; streams: the pointers
    that it moves, and whether each needs an instruction; seen: the elements that an iteration has loaded."""

    variable: str
    times: float
    is_short: bool
    stores: bool
    depends: frozenset[str]
    streams: dict[tuple[str, float], bool] = field(default_factory=dict)
    seen: set[c.Expr] = field(default_factory=set)


@dataclass
class _Counter:
    """Counts the instructions of statements of an entry or of a function of loops."""

    program: Program
    source: Source
    numbers: dict[str, float] = field(
        default_factory=dict
    )  # values of variables; means of variables of loops
    local: set[str] = field(default_factory=set)  # arrays that are in registers
    tables: dict[str, Numbers] = field(default_factory=dict)  # the geometry of kernels
    around: list[_Loop] = field(default_factory=list)  # the outermost first
    steps: dict[str, float] = field(default_factory=dict)  # by number, without the steps inside

    def __post_init__(self) -> None:
        self.cost: CostTable = self.program.backends.cost
        self.numbers.setdefault("n", self.program.batch)
        self.kernels = {k.symbol: k for k in self.program.kernels}
        self.functions = {f.name: f for f in self.source.functions}
        self.constants = {t.name for t in self.source.tables}
        self.own = {f.symbol for f in self.source.own}
        for (_, fields), name in self.source.geometry.items():
            self.tables[name] = dict(fields)

    def of(self, statements: Sequence[c.Statement]) -> float:
        total, step = 0.0, ""
        for s in statements:
            if isinstance(s, c.Comment) and s.step:
                step = s.step
            before = sum(self.steps.values())
            count = self._statement(s)
            total += count
            if step:
                inside = sum(self.steps.values()) - before
                times = math.prod(loop.times for loop in self.around)
                self.steps[step] = self.steps.get(step, 0.0) + times * count - inside
        return total

    # Statements

    def _statement(self, s: c.Statement) -> float:
        if isinstance(s, c.For):
            return self._loop(s)
        if isinstance(s, c.Block):
            return self.of(s.body)
        if isinstance(s, c.If):
            return self._expr(s.test) + 1 + max(self.of(s.then), self.of(s.otherwise))
        if isinstance(s, c.ExprStatement):
            return self._expr(s.expr)
        if isinstance(s, c.Assign):
            return self._assign(s)
        if isinstance(s, c.Declare):
            return self._declare(s)
        if isinstance(s, c.Array):
            self.local.add(s.name)
            return s.size if s.first else 0
        if isinstance(s, c.Table):
            self.tables[s.name] = dict(s.fields)
        if isinstance(s, c.StepTemplate):
            return self._step(s)
        return 0

    def _loop(self, s: c.For) -> float:
        self.local.update(o.name for o in s.blocks)
        start, stop = self._number(s.start) or 0.0, self._number(s.stop) or 0.0
        times = float(-(-max(0.0, (stop - start) / s.step + (s.step < 0)) // 1))
        self.numbers[s.variable] = start + max(0.0, times - 1) / 2 * s.step
        fixed = c_query.names((s.start, s.stop)) <= self.numbers.keys() - {"n"}
        is_short = (
            fixed
            and times <= UNROLLED
            and not s.rolled
            and not any(isinstance(x, c.For) for x in c_query.statements(s.body))
        )
        depends = self._depends(s.start) if is_short else frozenset({s.variable})
        loop = _Loop(s.variable, times, is_short, stores(s.body, self.local), depends)
        self.around.append(loop)
        body = self.of(s.body)
        self.around.pop()
        if is_short and s.blocks:
            return times * body + self._block_moves(s.blocks, times)
        if is_short:
            return times * body
        if s.blocks:
            inner = next(x for x in c_query.loops(s.body))
            body += self._block_moves(s.blocks, self._number(inner.stop) or 0.0)
        return times * (body + self.cost.loop + sum(loop.streams.values())) + 1

    def _block_moves(self, blocks: Sequence[c.BlockOperand], width: float) -> float:
        """Instructions that load and store one block of each operand and move its pointer, which takes another one with
        a stride."""
        total = 0.0
        for o in blocks:
            total += o.is_read + o.is_written + (o.stride is not None)
            if o.limit is not None:
                total += width * (_RELU if o.limit == c.Literal("INFINITY") else _LIMITED) - 1
        return total

    def _declare(self, s: c.Declare) -> float:
        total = 0.0
        for name, value in s.variables:
            if value is None:
                continue
            if s.is_pointer:
                total += 1
                continue
            known = self._number(value) if "int" in s.c_type else None
            if known is not None:
                self.numbers[name] = known
            total += self._expr(value)
        return total

    def _assign(self, s: c.Assign) -> float:
        total = self._expr(s.value)
        if s.op != "=":
            total += self.cost.arithmetic * (not is_product(s.value)) + self._expr(s.target)
        return total + self._store(s.target)

    def _store(self, target: c.Expr) -> float:
        if isinstance(target, c.Element):
            if self._in_registers(target):
                return 0
            self._move(target)
            return self.cost.store
        return self.cost.store if isinstance(target, c.Member) else 0

    # Memory

    def _element(self, e: c.Element) -> float:
        """Instructions of a load; 0 for constants, and for an element that is in a register: it was loaded before in
        the same iteration, or before the loop."""
        if self._in_registers(e) or (isinstance(e.array, c.Name) and e.array.text in self.constants):
            return 0
        moving, share = self._depends(e.index), 1.0
        real = None
        for loop in reversed(self.around):
            if not loop.is_short:
                real = loop
                break
            if loop.variable not in c_query.names(e.index):
                share /= loop.times
        if real is not None:
            if e in real.seen or (real.variable not in moving and not real.stores):
                return 0
            real.seen.add(e)
        self._move(e)
        return self.cost.load * share + self._index(e.index)

    def _move(self, e: c.Element) -> None:
        """Note by how much the innermost loop moves through an array."""
        real, inside = None, False
        for loop in reversed(self.around):
            if not loop.is_short:
                real = loop
                break
            inside = inside or loop.variable in c_query.names(e.index)
        if real is None or real.variable not in self._depends(e.index):
            return
        step = coefficient(e.index, real.variable)
        key = (array_of(e), step)
        real.streams[key] = real.streams.get(key, False) or inside or step != 1

    def _depends(self, e: c.Expr) -> frozenset[str]:
        found = frozenset[str]()
        variables = {loop.variable: loop.depends for loop in self.around}
        for name in c_query.names(e):
            found |= variables.get(name, frozenset())
        return found

    def _step(self, s: c.StepTemplate) -> float:
        if s.identifier == "+":
            return self._expr(s.x) + self.cost.arithmetic * (not is_product(s.x))
        return self._expr(s.x) + SELECT * self.cost.arithmetic + (0 if s.index is None else 1)

    # Expressions

    def _expr(self, e: c.Expr) -> float:
        """Instructions of an expression; an index that is linear in the variables of loops takes none."""
        add = self.cost.arithmetic
        if isinstance(e, c.Element):
            return self._element(e)
        if isinstance(e, c.Member):
            return self.cost.load
        if isinstance(e, c.Call):
            return self._call(e)
        if isinstance(e, c.Unary):
            return 0 if e.symbol in ("&", "-") else add + self._expr(e.operand)
        if isinstance(e, c.Cast):
            return self._expr(e.operand) + ("*" not in e.c_type) * add
        if isinstance(e, c.Binary):
            is_fused = e.symbol in "+-" and (is_product(e.left) or is_product(e.right))
            return (0 if is_fused else add) + self._expr(e.left) + self._expr(e.right)
        if isinstance(e, c.Sum):
            parts = (*e.terms, *e.less)
            fused = min(sum(map(is_product, parts)), len(parts) - 1)
            return (len(parts) - 1 - fused) * add + sum(map(self._expr, parts))
        if isinstance(e, c.Conditional):
            return SELECT * add + self._expr(e.test) + max(self._expr(e.then), self._expr(e.otherwise))
        if isinstance(e, c.Template):
            return self._template(e)
        return 0

    def _template(self, e: c.Template) -> float:
        parts = sum(map(self._expr, e.operands))
        called = sum(map(self._function, e.calls))
        symbols = operators(e.text)
        fused = e.is_sum and any(map(is_product, e.operands))
        return parts + called + max(0, symbols - fused) * self.cost.arithmetic

    def _function(self, name: str) -> float:
        if name in ("sqrtf", "fabsf", "ag_fabsf"):
            return self.cost.arithmetic
        if "call" in (known := self.cost.calls.get(name, {})):
            return known["call"]
        return (OWN if name in self.own else FUNCTION) * self.cost.arithmetic

    def _index(self, e: c.Expr) -> float:
        """Instructions of the loads in an index."""
        if isinstance(e, c.Element):
            return self._element(e)
        if isinstance(e, c.Binary):
            return self._index(e.left) + self._index(e.right)
        if isinstance(e, c.Sum):
            return sum(map(self._index, (*e.terms, *e.less)))
        if isinstance(e, c.Cast | c.Unary):
            return self._index(e.operand)
        return 0

    def _call(self, e: c.Call) -> float:
        if e.function in _MOVED:
            return CALL + _MOVED[e.function] * (self._number(e.arguments[2]) or 0.0)
        if e.function in self.functions:
            return self._own(e)
        if e.function in self.kernels:
            return self._kernel(e)
        inside = sum(self._expr(a) for a in e.arguments if not isinstance(a, c.Name))
        return inside + (self._function(e.function) if e.function.startswith("ag_") else self.cost.arithmetic)

    def _own(self, e: c.Call) -> float:
        function = self.functions[e.function]
        inner = replace(self, numbers=dict(self.numbers), local=set(), around=[])
        for p, a in zip(function.parameters, e.arguments, strict=True):
            if (number := self._number(a)) is not None:
                inner.numbers[p.name] = number
        return CALL + inner.of(function.body)

    def _kernel(self, e: c.Call) -> float:
        kernel = self.kernels[e.function]
        facts: dict[str, float] = {}
        for p, a in zip(CONTRACT[kernel.name].params, e.arguments, strict=True):
            if p.is_scratch:
                facts["panel"] = float(a != c.Name("NULL"))
            elif p.struct and isinstance(a, c.Unary) and isinstance(a.operand, c.Name):
                facts |= self.tables.get(a.operand.text, {})
            elif p.is_epilogue:
                facts["epilogue"] = float(a != c.Name("NULL"))
            elif (number := self._number(a)) is not None:
                facts[p.name] = number
        return call_cost(kernel, facts, self.cost)

    # Numbers

    def _in_registers(self, e: c.Element) -> bool:
        return isinstance(e.array, c.Name) and e.array.text in self.local

    def _number(self, e: c.Expr) -> float | None:
        return value_of(e, self.numbers)
