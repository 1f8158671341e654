"""Names of the ops of a float graph in reports and messages."""

from __future__ import annotations

from ...ir.node import Node


def name_of(node: Node) -> str:
    """The name of the layer that computes a node; MODULE.op for an op that a module computes beside its layers."""
    module = node.origin.module
    if module and module == node.origin.scope:
        return module
    return f"{module}.{node.op.name}" if module else node.op.name


def described(node: Node) -> str:
    """`relu of layer 'block'`: an op and its module, for messages."""
    module = node.origin.module
    return f"{node.op.name} of {f'layer {module!r}' if module else 'the outermost module'}"
