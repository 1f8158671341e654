"""Nodes that copy values into memory of their own, with the scope, phase and name of each."""

from __future__ import annotations

from ...ir.build import apply
from ...ir.graph import State
from ...ir.identifiers import identifier
from ...ir.node import Value, base
from ...ir.origin import UPDATE, Label, building


def copied(v: Value) -> Value:
    """A copy that belongs where the value does."""
    return copied_for(v, v.node.origin.scope, base(v).node.origin.phase)


def copied_for(v: Value, scope: str, phase: str) -> Value:
    with building(scope, phase):
        copy = apply("copy", v)
    copy.node.origin.labels[0] = Label("copy", copy_of=v)
    return copy


def snapshot(v: Value, state: State, phase: str = UPDATE) -> Value:
    """A copy of the old value of a state, which is read after the state's update; the report lists them. phase: that of
    training to which it belongs."""
    with building(phase=phase):
        copy = apply("copy", v, snapshot=True)
    copy.node.origin.labels[0] = Label(f"old_{identifier(state.name)}")
    return copy
