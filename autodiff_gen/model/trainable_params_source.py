"""The lines of a model file that say which parameters train."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..ir.graph import State
from ..nn import Module
from .update_plan import ParameterRow, chosen_channels

NETWORK = "net"  # the name that the lines give a network without a name in the model file


def trainable_params_source(rows: Sequence[ParameterRow], names: Mapping[str, Any]) -> list[str]:
    """Lines that let the parameters of `rows` train as the rows say; `names`: the global names of the model file. The
    lines belong after the network, and before the model that is built from it."""
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
        layers = dict(_layers(name, network))
        for path, parameter in network.named_parameters():
            state = parameter.node.attrs["state"]
            known.setdefault(state, (name, layers[path.rpartition(".")[0]]))
    for state in states:
        path = state.name.rpartition(".")[0]
        known.setdefault(state, (NETWORK, _submodule(NETWORK, path)))
    return known


def _layers(root: str, network: Module) -> Iterator[tuple[str, str]]:
    """The path of each module in a network, and the module as an expression: features.3, net.features[3]."""
    pending = [(network, root, "")]
    while pending:
        module, expression, path = pending.pop()
        yield path, expression
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
