"""The lines of a model file that say which parameters train."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..ir.graph import State
from ..nn import Module
from .update_plan import ParameterRow, chosen_channels

NETWORK = "net"  # the name in the lines of a network that has no name in the model file


def update_lines(rows: Sequence[ParameterRow], names: Mapping[str, Any]) -> list[str]:
    """Lines after which these parameters train; `names`: the global names of the model file. The lines belong between
    the network and the model that is built from it."""
    found = _expressions(names, [row.state for row in rows])
    roots = dict.fromkeys(root for root, _ in found.values())
    lines = [f"{root}.requires_grad_(False)" for root in roots]
    for row in rows:
        _, layer = found[row.state]
        what = row.state.name.rpartition(".")[2]
        if row.fraction and chosen_channels(row.state, row.fraction) is not None:
            lines.append(f"nn.update_channels({layer}, {row.fraction:g})")
        elif row.fraction:
            lines.append(f"{layer}.{what}.requires_grad = True")
    return lines


def _expressions(names: Mapping[str, Any], states: Sequence[State]) -> dict[State, tuple[str, str]]:
    """For each parameter its network and its layer, as expressions of Python."""
    known: dict[State, tuple[str, str]] = {}
    networks = sorted(
        ((name, v) for name, v in names.items() if isinstance(v, Module) and not name.startswith("_")),
        key=lambda item: -len(list(item[1].modules())),
    )
    for name, network in networks:
        for state, layer in _layers(name, network):
            known.setdefault(state, (name, layer))
    for state in states:
        path = state.name.rpartition(".")[0]
        known.setdefault(state, (NETWORK, _submodule(NETWORK, path)))
    return known


def _layers(root: str, network: Module) -> Iterator[tuple[State, str]]:
    """The parameters of a network, each with its layer: net.features[3]."""
    list(network.parameters())  # which gives all of them a name
    pending = [(network, root, "")]
    while pending:
        module, expression, path = pending.pop()
        for own in module._members()[0].values():
            if own is not None and own.value is not None:
                yield own.value.node.attrs["state"], expression
        for name, child in module.named_children():
            below = f"{path}.{name}" if path else name
            if name.isdigit() and hasattr(module, "__getitem__"):
                pending.append((child, f"{expression}[{name}]", below))
            elif name.isidentifier():
                pending.append((child, f"{expression}.{name}", below))
            else:
                pending.append((child, _submodule(root, below), below))


def _submodule(root: str, path: str) -> str:
    return f"{root}.get_submodule({path!r})" if path else root
