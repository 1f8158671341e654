"""The names of steps: the functions of the library whose calls made their nodes, in the order of these nodes.

    relu(batch_norm(x))                              batch_norm_relu
    the gradient of relu(batch_norm(x))              batch_norm_relu_backward
    w - step_size * m / (sqrt(v) + eps) of Adam      adam_update
    the running mean, a part of batch_norm           batch_norm_running_mean

A call that a kernel computes, such as `linear`, does not name the loops after the kernel. These loops are named after
their ops and the parameters that they read: `bias_add`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from ..ir.node import CONST, STATE, Node
from ..ir.op_kinds import Assemble, Elementwise, Extent, Iota, View
from ..ir.origin import FORWARD, FunctionCall
from ..lowering.loops.outlined_names import PHASES, StepName, joined
from ..lowering.plan import EntryPlan, PlannedStep

Key = tuple[FunctionCall, str]  # a call, and the phase in which nodes of it are computed


def step_names(plan: EntryPlan) -> Mapping[str, StepName]:
    """The names of an entry's steps, by their numbers."""
    states = {r for inside in plan.all_plans() for r, s in inside.states.items() if s.role == "buffer"}
    steps = list(plan.all_steps())
    kernels = {key for _, s in steps if s.nest is None and (key := _key(s.node)) is not None}
    found: dict[str, StepName] = {}
    later: set[Key] = set()  # the calls that later steps compute
    for number, step in reversed(steps):
        if step.nest is None:
            call = step.node.origin.call
            name = step.node.op.name if call is None else call.function
            found[number] = StepName(name, False, ((name, ""),), ((step.node.op.name, ""),))
            continue
        words: list[tuple[str, str]] = []
        functions: list[tuple[str, str]] = []
        ops: list[tuple[str, str]] = []
        last: Key | None = None
        own: set[Key] = set()
        for node in _computing(step):
            key = _outermost(node, kernels)
            function = None if key is None else (key[0].function, PHASES.get(key[1], ""))
            words.append(function or (_op(node, step), ""))
            ops.append((node.op.name, ""))
            functions.append(function or ops[-1])
            if key is not None:
                last = key
                own.add(key)
        is_kept = states.issuperset(step.node.results)
        is_part = is_kept or last in later
        found[number] = StepName(joined(words) or _moved(step), is_part, tuple(functions), tuple(ops))
        if not is_kept:
            later |= own
    return found


def called_in_region(step: Node) -> str:
    """The functions that the region of a node calls, as one name, such as `gru_cell_backward`; empty if it calls
    none."""
    nodes = step.regions[0].nodes
    around = list(_around(step.origin.call))
    outside = {(call, _phase(n)) for n in nodes for call in around}
    keys = [key for n in nodes if (key := _outermost(n, outside)) is not None]
    return joined([(call.function, PHASES.get(phase, "")) for call, phase in keys])


def _computing(step: PlannedStep) -> Iterator[Node]:
    """The nodes of a step's loops that compute elements, without nodes that only move them."""
    for node in step.node.regions[0].nodes:
        lower = node.op.lower
        moves = node.op.materializes or isinstance(lower, (View, Assemble))
        moves = moves or (isinstance(lower, Elementwise) and lower.is_identity)
        if node.op is not CONST and not moves and not isinstance(lower, (Extent, Iota)):
            yield node


def _moved(step: PlannedStep) -> str:
    """The name of a step that computes nothing."""
    sources = [v.base.node for v in step.node.regions[0].results]
    sources = [n.operands[0].base.node if n.op.materializes else n for n in sources]
    return "fill" if all(n.op is CONST for n in sources) else "copy"


def _key(node: Node) -> Key | None:
    call = node.origin.call
    return None if call is None else (call, _phase(node))


def _phase(node: Node) -> str:
    """The phase whose computation a node performs: a node of the backward pass may repeat one of the forward pass."""
    return FORWARD if node.origin.recomputed else node.origin.phase


def _outermost(node: Node, kernels: Set[Key]) -> Key | None:
    """The outermost call that made a node, except calls that a kernel computes."""
    keys = [(call, _phase(node)) for call in _around(node.origin.call)]
    return next((key for key in reversed(keys) if key not in kernels), None)


def _around(call: FunctionCall | None) -> Iterator[FunctionCall]:
    """A call, the call that it is a part of, and so on."""
    while call is not None:
        yield call
        call = call.within


def _op(node: Node, step: PlannedStep) -> str:
    """`bias_add`: the op of a node, after the names that the parameters that it reads have in their layers."""
    params = step.node.regions[0].params
    outer = [step.node.operands[params.index(v.base)].base for v in node.operands if v.base in params]
    states = [v.node.attrs["state"] for v in outer if v.node.op is STATE]
    roles = [s.name.rpartition(".")[2] for s in states if s.role == "parameter"]
    return "_".join([*dict.fromkeys(roles), node.op.name])
