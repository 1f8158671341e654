"""Short rows that are reduced to a sum or a maximum, for hosts with wide vectors.

    float acc = 0.0f;                      float acc_parts[16];
    AG_REDUCTION(+ : acc)                  AG_IVDEP
    for (k = 0; k < 64; k++) {             for (l = 0; l < 16; l++) {
        acc += x[k] * y[k];           ->       float acc = 0.0f;
    }                                          for (k = 0; k < 64; k += 16) {
                                                   acc += x[k + l] * y[k + l];
                                               }
                                               acc_parts[l] = acc;
                                           }
                                           float acc = ag_sum(acc_parts, 16);

Compilers compute a reduction in a vector too, but then add up its elements one after the other, which takes longer than
a short row; ag_sum adds them up as a tree. A maximum becomes one of integers (ag_order in runtime/ag_loops.h), whose
elements compilers combine as a tree themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...ir.identifiers import unused
from ...passes.costs import has_wide_vectors
from ...targets.cost_table import CostTable
from ..c import c_ast as c
from ..c import c_query
from .accesses import with_variable
from .statements import LOOP_NAMES

SHORT = 16  # vectors of a row, which compilers unroll completely
EXTREMES = {"ag_max": "", "ag_min": "-"}  # the sign that makes the extreme a maximum


def with_row_results(steps: Sequence[c.Statements], cost: CostTable) -> tuple[c.Statements, ...]:
    """The steps of an entry with such loops, if the target has wide vectors."""
    if not has_wide_vectors(cost):
        return tuple(steps)
    return tuple(_Rows(cost.vector, c_query.variables(step)).changed(step) for step in steps)


@dataclass(frozen=True)
class _Rows:
    vector: int
    taken: set[str]  # names of the step

    def changed(self, tree: c.Statements) -> c.Statements:
        out: list[c.Statement] = []
        for statement in tree:
            match statement:
                case c.For(reduction=c.Reduction() as reduction) if set(reduction.names) <= _begun(out):
                    rows = self._row(statement, reduction)
                    if rows:
                        out = [s for s in out if not _begins(s, reduction.names)]
                    out += rows or (statement,)
                    continue
                case c.For(body=body) | c.Block(body):
                    statement = replace(statement, body=self.changed(body))
                case c.If(test, then, otherwise):
                    statement = c.If(test, self.changed(then), self.changed(otherwise))
            out.append(statement)
        return tuple(out)

    def _row(self, loop: c.For, reduction: c.Reduction) -> c.Statements:
        """The statements that replace a loop and the declarations of its results; empty if the loop stays."""
        if reduction.identifier in EXTREMES:
            return self._extremes(loop, reduction)
        count = loop.from_zero if loop.step == 1 else None
        if reduction.identifier != "+" or not isinstance(count, int) or count % self.vector:
            return ()
        return self._sums(loop, reduction.names) if self.vector < count <= SHORT * self.vector else ()

    def _sums(self, loop: c.For, names: Sequence[str]) -> c.Statements:
        parts = {name: self._new(f"{name}_parts") for name in names}
        lane = next(name for name in (*LOOP_NAMES, "lane") if name not in self.taken)
        body = with_variable(loop.body, loop.variable, loop.variable, lane)
        inside: c.Statements = (
            *(c.declare("float", name, c.Literal("0.0f")) for name in names),
            replace(loop, body=body, step=self.vector, independent=False, reduction=None),
            *(c.Assign(c.Element(c.Name(parts[name]), c.Name(lane)), c.Name(name)) for name in names),
        )
        return (
            *(c.Array("float", parts[name], self.vector) for name in names),
            c.For(lane, c.number(self.vector), inside, independent=True, extent=self.vector),
            *(
                c.declare("float", name, c.Call("ag_sum", (c.Name(parts[name]), c.number(self.vector))))
                for name in names
            ),
        )

    def _extremes(self, loop: c.For, reduction: c.Reduction) -> c.Statements:
        sign = EXTREMES[reduction.identifier]
        orders = {name: c.Name(self._new(f"{name}_order")) for name in reduction.names}

        def signed(value: c.Expr) -> c.Expr:
            return c.Unary(sign, value) if sign else value

        body: list[c.Statement] = []
        for statement in loop.body:
            if isinstance(statement, c.StepTemplate):
                order = orders[c_query.words(statement.accumulators[0])[0]]
                body.append(c.Assign(order, c.Call("ag_larger_order", (order, signed(statement.x)))))
            else:
                body.append(statement)
        return (
            *(c.declare("uint32_t", order.text, c.Literal("0")) for order in orders.values()),
            replace(loop, body=tuple(body), independent=True, reduction=None),
            *(
                c.declare("float", name, signed(c.Call("ag_of_order", (order,))))
                for name, order in orders.items()
            ),
        )

    def _new(self, word: str) -> str:
        name = unused(word, self.taken)
        self.taken.add(name)
        return name


def _begun(statements: Sequence[c.Statement]) -> set[str]:
    """The floats that declarations at the end of these statements initialise with literals, such as accumulators."""
    begun: set[str] = set()
    for statement in reversed(statements):
        match statement:
            case c.Declare("float", ((name, c.Literal()),)):
                begun.add(name)
            case c.Declare():
                pass
            case _:
                break
    return begun


def _begins(statement: c.Statement, names: Sequence[str]) -> bool:
    match statement:
        case c.Declare("float", ((name, c.Literal()),)):
            return name in names
    return False
