"""The layers of nn by the functions that they call. The constructor's options follow from the arguments of a call and
from the shapes of the weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ... import functional as F
from ... import nn
from .program import ProgramCall, Shape
from .text import literal


@dataclass(frozen=True)
class LayerCall:
    """class_name: a class of nn; options: arguments of its constructor; inputs: arguments of its call; weights: by
    attribute; evaluated: whether it is in evaluation mode while the model trains."""

    class_name: str
    options: Mapping[str, Any]
    inputs: tuple[Any, ...]
    weights: Mapping[str, Any]
    evaluated: bool = False

    @property
    def constructor(self) -> str:
        """The text of its constructor call, without options that have the default value."""
        return f"nn.{self.class_name}({options_text(self.class_name, self.options)})"


def options_text(class_name: str, options: Mapping[str, Any]) -> str:
    """Arguments of a layer: those without a default value by position, others by name if they differ from it."""
    texts = []
    for parameter in parameters_of(getattr(nn, class_name)):
        value = options.get(parameter.name, parameter.default)
        kind = str(parameter.annotation)
        if any(word in kind for word in ("Numbers", "Sizes")) or (
            kind.startswith("int |") and isinstance(value, tuple) and len(value) == 1
        ):
            value = _short(value)
        if parameter.default is parameter.empty:
            texts.append(literal(value))
        elif value != parameter.default:
            texts.append(f"{parameter.name}={literal(value)}")
    return ", ".join(texts)


def _short(value: Any) -> Any:
    """A number in place of a tuple of equal numbers."""
    return value[0] if isinstance(value, tuple) and value and len(set(value)) == 1 else value


@cache
def parameters_of(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


def arguments_of(call: ProgramCall) -> dict[str, Any]:
    """All arguments of a call by name, defaults included."""
    if call.function in RECURRENT:
        return dict(zip(("input", "hx", "weights"), call.args, strict=True)) | dict(call.options)
    bound = inspect.signature(getattr(F, call.function)).bind(*call.args, **call.options)
    bound.apply_defaults()
    return bound.arguments


# Layers with weights: (arguments, shape of a reference) -> layer


def _linear(a: dict[str, Any], shape: Callable[[Any], Shape]) -> LayerCall:
    out_features, in_features = shape(a["weight"])
    sizes = {"in_features": in_features, "out_features": out_features, "bias": a["bias"] is not None}
    return LayerCall("Linear", sizes, (a["input"],), _pick(a, "weight", "bias"))


def _conv(class_name: str) -> Callable[..., LayerCall]:
    transposed = "Transpose" in class_name

    def build(a: dict[str, Any], shape: Callable[[Any], Shape]) -> LayerCall:
        first, second, *kernel = shape(a["weight"])
        own = _pick(a, "stride", "padding", "dilation", "groups")
        if transposed:
            own["output_padding"] = a["output_padding"]
        assert second is not None
        inputs, outputs = (first, second * a["groups"]) if transposed else (second * a["groups"], first)
        sizes = {"in_channels": inputs, "out_channels": outputs, "kernel_size": tuple(kernel)}
        options = {**sizes, **own, "bias": a["bias"] is not None}
        return LayerCall(class_name, options, (a["input"],), _pick(a, "weight", "bias"))

    return build


def _running(class_name: str, mode: str) -> Callable[..., LayerCall | None]:
    def build(a: dict[str, Any], shape: Callable[[Any], Shape]) -> LayerCall | None:
        weights = _pick(a, "weight", "bias", "running_mean", "running_var")
        some = next((w for w in weights.values() if w is not None), None)
        ndim, tracks = len(shape(a["input"])), a["running_mean"] is not None
        if some is None or (a["weight"] is None and a["bias"] is not None):
            return None
        options = {
            "num_features": shape(some)[0],
            "affine": a["weight"] is not None,
            "bias": a["bias"] is not None or a["weight"] is None,
            "track_running_stats": tracks,
            **_pick(a, "momentum", "eps"),
        }
        return LayerCall(
            f"{class_name}{'2d' if ndim == 4 else '1d'}",
            options,
            (a["input"],),
            weights,
            not a[mode] and tracks,
        )

    return build


def _layer_norm(a: dict[str, Any], shape: Callable[[Any], Shape]) -> LayerCall | None:
    if a["weight"] is None:
        return None
    options = {**_pick(a, "normalized_shape", "eps"), "bias": a["bias"] is not None}
    return LayerCall("LayerNorm", options, (a["input"],), _pick(a, "weight", "bias"))


def _rms_norm(a: dict[str, Any], shape: Callable[[Any], Shape]) -> LayerCall | None:
    options = _pick(a, "normalized_shape", "eps")
    return None if a["weight"] is None else LayerCall("RMSNorm", options, (a["input"],), _pick(a, "weight"))


def _group_norm(a: dict[str, Any], shape: Callable[[Any], Shape]) -> LayerCall | None:
    if a["weight"] is None:
        return None
    options = {"num_channels": shape(a["weight"])[0], "bias": a["bias"] is not None}
    return LayerCall(
        "GroupNorm", options | _pick(a, "num_groups", "eps"), (a["input"],), _pick(a, "weight", "bias")
    )


def _embedding(a: dict[str, Any], shape: Callable[[Any], Shape]) -> LayerCall:
    sizes = dict(zip(("num_embeddings", "embedding_dim"), shape(a["weight"]), strict=True))
    return LayerCall("Embedding", sizes | _pick(a, "padding_idx"), (a["input"],), _pick(a, "weight"))


def _prelu(a: dict[str, Any], shape: Callable[[Any], Shape]) -> LayerCall:
    return LayerCall("PReLU", {"num_parameters": shape(a["weight"])[0]}, (a["input"],), _pick(a, "weight"))


def _recurrent(class_name: str) -> Callable[..., LayerCall]:
    """Call weights: for each layer and direction weight_ih, weight_hh and, with biases, bias_ih and bias_hh."""

    def build(a: dict[str, Any], shape: Callable[[Any], Shape]) -> LayerCall:
        directions = 2 if a["bidirectional"] else 1
        roles = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if a["bias"] else 2]
        suffixes = [f"_l{k}{s}" for k in range(a["num_layers"]) for s in ("", "_reverse")[:directions]]
        attributes = [role + suffix for suffix in suffixes for role in roles]
        weights = dict(zip(attributes, a["weights"], strict=True))
        sizes = {"input_size": shape(a["weights"][0])[1], "hidden_size": shape(a["weights"][1])[1]}
        own = _pick(a, "num_layers", "bias", "batch_first", "dropout", "bidirectional")
        if class_name == "RNN":
            own["nonlinearity"] = a["nonlinearity"]
        if class_name == "GRU":
            own["reset_after"] = a.get("reset_after", True)
        evaluated = not a["training"] and a["dropout"] > 0
        return LayerCall(class_name, sizes | own, _with_state(a), weights, evaluated)

    return build


def _cell(class_name: str) -> Callable[..., LayerCall]:
    """Call weights: weight_ih, weight_hh and, with biases, bias_ih and bias_hh."""

    def build(a: dict[str, Any], shape: Callable[[Any], Shape]) -> LayerCall:
        weights = dict(zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), a["weights"], strict=False))
        sizes = {"input_size": shape(a["weights"][0])[1], "hidden_size": shape(a["weights"][1])[1]}
        options = {**sizes, "bias": len(weights) == 4, "nonlinearity": a.get("nonlinearity", "tanh")}
        return LayerCall(class_name, options, _with_state(a), weights)

    return build


def _with_state(a: Mapping[str, Any]) -> tuple[Any, ...]:
    """The inputs of a recurrent layer."""
    return (a["input"],) if a["hx"] is None else (a["input"], a["hx"])


def _pick(a: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: a[name] for name in names}


# Functions that exist only as layers. Arguments of their calls: (input, hx, weights), and the options of the layer.
RECURRENT = ("gru", "lstm", "rnn", "gru_cell", "lstm_cell", "rnn_cell")

WEIGHTED: Mapping[str, Callable[..., LayerCall | None]] = {
    "linear": _linear,
    "conv1d": _conv("Conv1d"),
    "conv2d": _conv("Conv2d"),
    "conv_transpose1d": _conv("ConvTranspose1d"),
    "conv_transpose2d": _conv("ConvTranspose2d"),
    "batch_norm": _running("BatchNorm", "training"),
    "instance_norm": _running("InstanceNorm", "use_input_stats"),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "embedding": _embedding,
    "prelu": _prelu,
    "gru": _recurrent("GRU"),
    "lstm": _recurrent("LSTM"),
    "rnn": _recurrent("RNN"),
    "gru_cell": _cell("GRUCell"),
    "lstm_cell": _cell("LSTMCell"),
    "rnn_cell": _cell("RNNCell"),
}
