"""Freeze states: parameters that no entry trains and buffers that no entry updates, such as statistics of a BatchNorm
in evaluation mode, are constants in flash. They are not saved or updated.

    entry train_step(x: f32[4])          entry train_step(x: f32[4])
      %0: f32[4] = mul(w, x)               %0: f32[4] = const()
      %1: f32[4] = mul(v, %0)        ->    %1: f32[4] = mul(%0, x)
      v' <- %1                             %2: f32[4] = mul(v, %1)
                                           v' <- %2

A constant has the value of the model when it was built.
"""

from __future__ import annotations

from ...ir.build import constant
from ...ir.graph import Graph, State
from ...ir.module import IRModule
from ...ir.node import STATE, Value
from ...ir.origin import building
from ...ir.rewrite import replaced
from ..context import Context


def freeze_states(module: IRModule[Graph], context: Context) -> IRModule[Graph]:
    """See the module. Functions take their parameters as arguments."""
    if context.training is None:
        return module
    updated = {state for graph in module.entries for state in graph.updates}
    old = {v: v.node.attrs["state"] for graph in module.entries for v in graph.leaves(STATE)}
    constants = {v: _constant(state) for v, state in old.items() if state not in updated}
    entries = [graph.with_roots(replaced(graph.roots, constants)) for graph in module.entries]
    return module.with_entries(*entries)


def _constant(state: State) -> Value:
    """The initial value of a state, as it is stored, with the state's role in its module."""
    scope, _, role = state.name.rpartition(".")
    with building(scope):
        return constant(state.stored(state.init.array()), state.type.dtype, state.type.quantization, role)
