"""Rules of the table: recurrent layers. ONNX has the gates in another order than PyTorch, and all biases in one
tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..imported.program import ValueRef
from ..imported.rules import Arguments, Rule, Unsupported

# For each of PyTorch's gates its place in ONNX's order: LSTM i f g o in i o f c, GRU r z n in z r h.
GATES = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2), "rnn": (0,)}
ACTIVATIONS = {"lstm": ("Sigmoid", "Tanh", "Tanh"), "gru": ("Sigmoid", "Tanh"), "rnn": ("Tanh",)}


def _recurrent(function: str) -> Rule:
    def rule(c: Any, a: Arguments) -> Any:
        directions = 2 if a["direction"] == "bidirectional" else 1
        nonlinearity = _check(c, a, function, directions)
        first, backwards = bool(a.get("layout")), a["direction"] == "reverse"  # the batch is the first axis
        time = 1 if first else 0
        x = c.operand(a["X"])
        steps = tuple((c.values[x.name] if isinstance(x, ValueRef) else c.weights[x.name].array).shape[:2])
        x = c.emit("flip", x, time) if backwards else x
        options: dict[str, Any] = {
            "num_layers": 1,
            "bias": a["B"] is not None,
            "batch_first": first,
            "dropout": 0.0,
            "bidirectional": directions == 2,
            "training": False,
        }
        if function == "rnn":
            options["nonlinearity"] = nonlinearity
        if function == "gru":
            options["reset_after"] = bool(a["linear_before_reset"])
        name, states = next(name for name in c.names() if name), 2 if function == "lstm" else 1
        ends = tuple(f"{name}.{k}" for k in range(states))
        last_shape = (directions, steps[1 - time], a["hidden_size"])
        y, *last = c.emit_layer(
            function,
            (f"{name}.y", ends if states == 2 else ends[0]),
            [(*steps, directions * a["hidden_size"]), *[last_shape] * states],
            x,
            _state(c, a, function, first),
            _weights(c, a, function, directions),
            **options,
        )
        y = c.emit("flip", y, time) if backwards else y
        split = (*(d if isinstance(d, int) else -1 for d in steps), directions, a["hidden_size"])
        y = c.emit("reshape", y, split)
        y = y if first else c.emit("permute", y, (0, 2, 1, 3))
        return [y, *(c.emit("transpose", h, 0, 1) if first else h for h in last)]

    return rule


def _check(c: Any, a: Arguments, function: str, directions: int) -> str:
    """The nonlinearity of a simple recurrent layer. Raises Unsupported for attributes and inputs without
    counterpart."""
    known, given = ACTIVATIONS[function], tuple(a.get("activations") or ())
    given = given[: directions * len(known)] or known * directions
    relu = function == "rnn" and set(given) == {"Relu"}
    if given != known * directions and not relu:
        raise Unsupported(f"has activations={given}; PyTorch's layer has {known}")
    if a.get("clip") is not None or a.get("input_forget"):
        raise Unsupported("has clip or input_forget; leave them out")
    if a.get("P") is not None:
        raise Unsupported("has peepholes; leave them out")
    lengths, steps = a.get("sequence_lens"), c.shape(a["X"])[1 if a.get("layout") else 0]
    if lengths is not None and c.uniform(lengths) != steps:
        raise Unsupported("has sequence_lens; pad the sequences")
    return "relu" if relu else "tanh"


def _weights(c: Any, a: Arguments, function: str, directions: int) -> tuple[Any, ...]:
    """For each direction weight_ih, weight_hh and, with biases, bias_ih and bias_hh. Nodes that share only some of the
    tensors, such as zero biases that an exporter merged, get separate parameters."""
    for name in ("W", "R", "B"):
        if isinstance(a[name], ValueRef):
            raise Unsupported(f"has {name} that is computed; make it an initializer")
    found, group = [], tuple(a[name].name for name in ("W", "R", "B") if a[name] is not None)
    for d in range(directions):
        suffix = ("_l0", "_l0_reverse")[d]
        parts = [("weight_ih", "W", 0), ("weight_hh", "R", 0)]
        if a["B"] is not None:
            parts += [("bias_ih", "B", 0), ("bias_hh", "B", 1)]
        for role, name, half in parts:

            def order(array: NDArray[Any], d: int = d, half: int = half) -> NDArray[Any]:
                one = array[d] if array.ndim == 3 else np.split(array[d], 2)[half]
                gates = np.split(one, len(GATES[function]))
                return np.concatenate([gates[k] for k in GATES[function]])

            found.append(c.weight(a[name], role + suffix, order, group=group))
    return tuple(found)


def _state(c: Any, a: Arguments, function: str, first: bool) -> Any:
    """The initial state; None if it is zero."""
    given = [a["initial_h"], *([a["initial_c"]] if function == "lstm" else [])]
    if all(g is None or c.uniform(g) == 0 for g in given):
        return None
    if any(g is None for g in given):
        raise Unsupported("has one of two initial states; give both")
    refs = [c.operand(g) for g in given]
    refs = [c.emit("transpose", r, 0, 1) for r in refs] if first else refs
    return tuple(refs) if function == "lstm" else refs[0]


RECURRENT: dict[str, Rule] = {"GRU": _recurrent("gru"), "LSTM": _recurrent("lstm"), "RNN": _recurrent("rnn")}
