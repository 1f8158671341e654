"""The bound of a network: the bytes of an arena that stores only the result of each product and convolution, from the
forward pass to its gradient in the backward pass. The gradient has the memory of the result, and everything elementwise
is computed where it is read.

The products are in the order of the plan. The gradient of a product is found by its weights. The result of a product
without weights counts until it is read for the last time; so do the results that loops of the forward pass compute from
it in as many bytes. Scratch memory, and gradients that wait for others, do not count.
"""

from __future__ import annotations

from ...ir.node import Value
from ...ir.origin import is_after_loss
from ..plan import EntryPlan, PlannedStep


def network_bound(plan: EntryPlan) -> int:
    """The bound in bytes, or the bound of the plan if that is less, as where the plan computes products in loops."""
    products = [s for s in plan.steps if s.nest is None]
    late: dict[object, int] = {}  # for each weight the last step of the backward pass that reads or writes it
    read: dict[Value, int] = {}
    for s in plan.steps:
        read |= dict.fromkeys((v.base for v in s.node.operands), s.number)
        if is_after_loss(s.node.origin) and s.nest is None:
            late |= dict.fromkeys(_weights(s, plan), s.number)
    images = dict(
        read
    )  # for each value the last step that reads it, or reads what loops of the forward pass compute from it
    for s in reversed(plan.steps):
        if s.nest is not None and not is_after_loss(s.node.origin):
            last = max([images.get(r, 0) for r in s.node.results], default=0)
            large = max([r.type.bytes for r in s.node.results], default=0)
            images |= {
                v.base: max(images[v.base], last) for v in s.node.operands if v.base.type.bytes <= large
            }
    until: dict[Value, int] = {}
    peak = 0
    for s in products:
        stored = sum(v.type.bytes for v, last in until.items() if last >= s.number)
        results = [r for r in s.node.results if r not in plan.states and r not in plan.outputs]
        peak = max(peak, stored + sum(r.type.bytes for r in results))
        if not is_after_loss(s.node.origin):
            gradients = [late[w] for w in _weights(s, plan) if w in late]
            until |= {
                r: max([*gradients, read.get(r, 0)]) if gradients else images.get(r, 0) for r in results
            }
    return min(peak, sum(p.bound for p in plan.plans.values()))


def _weights(step: PlannedStep, plan: EntryPlan) -> set[object]:
    """The states that a product reads or writes, and the constants and inputs with several axes that it reads."""
    states = {
        plan.states[v]
        for v in (*(v.base for v in step.node.operands), *step.node.results)
        if v in plan.states
    }
    constants = {v.base for v in step.node.operands if not v.base.node.operands and v.base.ndim > 1}
    return {*states, *constants}
