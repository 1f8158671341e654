"""Replace calls by layers of nn: a call whose weights are all weights of one module, and the only call of a module
without weights.

    linear(x, fc.weight, fc.bias)    ->    fc = nn.Linear(4, 3); fc(x)
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ... import functional as F
from ... import nn
from .program import Call, Program, Shape, WeightRef, call_references, chains, owner, weights_of

TRACKED = "num_batches_tracked"  # a buffer of normalisation layers that no function reads


@dataclass(frozen=True)
class Layer:
    """class_name: of nn; options: of its constructor; inputs: of its call; weights: by attribute; evaluated: whether it
    is in evaluation mode while the model trains."""

    class_name: str
    options: Mapping[str, Any]
    inputs: tuple[Any, ...]
    weights: Mapping[str, Any]
    evaluated: bool = False

    @property
    def constructor(self) -> str:
        """Its constructor call, without options that have the layer's default value."""
        return f"nn.{self.class_name}({options_text(self.class_name, self.options)})"


def options_text(class_name: str, options: Mapping[str, Any]) -> str:
    """Arguments of a layer: those without a default value by position, others by name if they differ from it."""
    texts = []
    for parameter in parameters_of(getattr(nn, class_name)):
        value = _short(options.get(parameter.name, parameter.default))
        if parameter.default is parameter.empty:
            texts.append(repr(value))
        elif value != parameter.default:
            texts.append(f"{parameter.name}={value!r}")
    return ", ".join(texts)


def _short(value: Any) -> Any:
    """A number for a tuple of equal numbers of two axes, as layers accept."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == value[1]:
        return value[0]
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


@cache
def parameters_of(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


def arguments_of(call: Call) -> dict[str, Any]:
    """All arguments of a call by name, defaults included."""
    if call.function in RECURRENT:
        return dict(zip(("input", "hx", "weights"), call.args, strict=True)) | dict(call.options)
    bound = inspect.signature(getattr(F, call.function)).bind(*call.args, **call.options)
    bound.apply_defaults()
    return bound.arguments


# Layers with weights: (arguments, shape of a reference) -> layer


def _linear(a: dict[str, Any], shape: Callable[[Any], Shape]) -> Layer:
    out_features, in_features = shape(a["weight"])
    sizes = {"in_features": in_features, "out_features": out_features, "bias": a["bias"] is not None}
    return Layer("Linear", sizes, (a["input"],), _pick(a, "weight", "bias"))


def _conv(class_name: str) -> Callable[..., Layer]:
    transposed = "Transpose" in class_name

    def build(a: dict[str, Any], shape: Callable[[Any], Shape]) -> Layer:
        first, second, *kernel = shape(a["weight"])
        own = _pick(a, "stride", "padding", "dilation", "groups")
        if transposed:
            own["output_padding"] = a["output_padding"]
        assert second is not None
        inputs, outputs = (first, second * a["groups"]) if transposed else (second * a["groups"], first)
        sizes = {"in_channels": inputs, "out_channels": outputs, "kernel_size": tuple(kernel)}
        options = {**sizes, **own, "bias": a["bias"] is not None}
        return Layer(class_name, options, (a["input"],), _pick(a, "weight", "bias"))

    return build


def _running(class_name: str, mode: str) -> Callable[..., Layer | None]:
    def build(a: dict[str, Any], shape: Callable[[Any], Shape]) -> Layer | None:
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
        return Layer(
            f"{class_name}{'2d' if ndim == 4 else '1d'}",
            options,
            (a["input"],),
            weights,
            not a[mode] and tracks,
        )

    return build


def _layer_norm(a: dict[str, Any], shape: Callable[[Any], Shape]) -> Layer | None:
    if a["weight"] is None:
        return None
    options = {**_pick(a, "normalized_shape", "eps"), "bias": a["bias"] is not None}
    return Layer("LayerNorm", options, (a["input"],), _pick(a, "weight", "bias"))


def _rms_norm(a: dict[str, Any], shape: Callable[[Any], Shape]) -> Layer | None:
    options = _pick(a, "normalized_shape", "eps")
    return None if a["weight"] is None else Layer("RMSNorm", options, (a["input"],), _pick(a, "weight"))


def _group_norm(a: dict[str, Any], shape: Callable[[Any], Shape]) -> Layer | None:
    if a["weight"] is None:
        return None
    options = {"num_channels": shape(a["weight"])[0], "bias": a["bias"] is not None}
    return Layer(
        "GroupNorm", options | _pick(a, "num_groups", "eps"), (a["input"],), _pick(a, "weight", "bias")
    )


def _embedding(a: dict[str, Any], shape: Callable[[Any], Shape]) -> Layer:
    sizes = dict(zip(("num_embeddings", "embedding_dim"), shape(a["weight"]), strict=True))
    return Layer("Embedding", sizes | _pick(a, "padding_idx"), (a["input"],), _pick(a, "weight"))


def _recurrent(class_name: str) -> Callable[..., Layer]:
    """weights: of each layer and direction weight_ih, weight_hh and, with biases, bias_ih and bias_hh."""

    def build(a: dict[str, Any], shape: Callable[[Any], Shape]) -> Layer:
        directions = 2 if a["bidirectional"] else 1
        roles = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: 4 if a["bias"] else 2]
        suffixes = [f"_l{k}{s}" for k in range(a["num_layers"]) for s in ("", "_reverse")[:directions]]
        attributes = [role + suffix for suffix in suffixes for role in roles]
        weights = dict(zip(attributes, a["weights"], strict=True))
        sizes = {"input_size": shape(a["weights"][0])[1], "hidden_size": shape(a["weights"][1])[1]}
        own = _pick(a, "num_layers", "bias", "batch_first", "dropout", "bidirectional")
        if class_name == "RNN":
            own["nonlinearity"] = a["nonlinearity"]
        inputs = (a["input"],) if a["hx"] is None else (a["input"], a["hx"])
        return Layer(class_name, sizes | own, inputs, weights, not a["training"] and a["dropout"] > 0)

    return build


def _pick(a: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: a[name] for name in names}


# Functions that are layers only: (input, hx, weights) and the options of the layer.
RECURRENT = ("gru", "lstm", "rnn")

WEIGHTED: Mapping[str, Callable[..., Layer | None]] = {
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
    "gru": _recurrent("GRU"),
    "lstm": _recurrent("LSTM"),
    "rnn": _recurrent("RNN"),
}

# Layers that only call the function of the same name with their options.
PLAIN = {
    name.lower(): name
    for name in (
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
        "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d",
        "AvgPool1d",
        "AvgPool2d",
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "ELU",
        "Flatten",
        "GELU",
        "Hardsigmoid",
        "Hardswish",
        "Hardtanh",
        "LeakyReLU",
        "LogSigmoid",
        "LogSoftmax",
        "MaxPool1d",
        "MaxPool2d",
        "Mish",
        "ReLU",
        "ReLU6",
        "SELU",
        "SiLU",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Softsign",
        "Tanh",
        "Unflatten",
    )
}


def _plain(call: Call) -> Layer | None:
    """The layer of a call without weights."""
    class_name = PLAIN.get(call.function.replace("_", ""))
    if class_name is None or any(isinstance(r, WeightRef) for r in call_references(call)):
        return None
    (input, *_), (_, *rest) = arguments_of(call).values(), arguments_of(call).items()
    given = dict(rest)
    training = given.pop("training", True)
    known = {p.name: p for p in parameters_of(getattr(nn, class_name))}
    function = {p.name: p.default for p in parameters_of(getattr(F, call.function))}
    if any(value != function[name] for name, value in given.items() if name not in known):
        return None
    return Layer(class_name, given, (input,), {}, not training)


def with_layers(program: Program) -> Program:
    """The program with layers in the place of calls; unused calls and weights are left out."""
    calls = program.live
    sizes = Counter(chain for call in calls for chain in chains(call.frames))
    found = [_found(call, program, sizes) for call in calls]
    texts: dict[str, set[tuple[str, bool]]] = {}
    for one in found:
        if one is not None:
            texts.setdefault(one[0], set()).add((one[1].constructor, one[1].evaluated))
    good = {path: next(iter(made)) for path, made in texts.items() if len(made) == 1}
    inside = {frame.path for call in calls for frame in call.frames}
    good = {
        path: made
        for path, made in good.items()
        if not any(other.startswith(f"{path}.") for other in inside | good.keys())
    }
    changed = [
        call if one is None or one[0] not in good else _called(call, *one)
        for call, one in zip(calls, found, strict=True)
    ]
    used = {r.name for call in calls for r in call_references(call) if isinstance(r, WeightRef)}
    used |= {f"{path}.{TRACKED}" for path in good}
    return replace(
        program,
        calls=changed,
        weights={name: w for name, w in program.weights.items() if name in used},
        tied={name: other for name, other in program.tied.items() if owner(name) in good},
        layers={path: text for path, (text, _) in good.items()},
        evaluated={path for path, (_, evaluated) in good.items() if evaluated},
    )


def _found(call: Call, program: Program, sizes: Counter[tuple[str, ...]]) -> tuple[str, Layer] | None:
    """The path and the layer of a call."""
    inner = call.frames[-1] if call.frames and sizes[chains(call.frames)[-1]] == 1 else None
    if call.function not in WEIGHTED:
        layer = _plain(call) if inner is not None else None
        return (
            None
            if layer is None or inner is None or weights_of(inner.path, program.weights)
            else (inner.path, layer)
        )

    def shape(ref: Any) -> Shape:
        if isinstance(ref, WeightRef):
            return tuple(program.weights[ref.name].array.shape)
        return program.shapes[ref.name]

    layer = WEIGHTED[call.function](arguments_of(call), shape)
    if layer is None:
        return None
    refs = {key: ref for key, ref in layer.weights.items() if ref is not None}
    if not all(isinstance(ref, WeightRef) for ref in refs.values()):
        return None
    paths = [*([inner.path] if inner else []), *(owner(ref.name) for ref in refs.values())]
    active = zip(call.frames, chains(call.frames), strict=True)
    shared = {frame.path for frame, chain in active if sizes[chain] > 1}  # modules that call more than this
    return next(((p, layer) for p in paths if p and p not in shared and _matches(p, refs, program)), None)


def _matches(path: str, refs: Mapping[str, WeightRef], program: Program) -> bool:
    """Whether these are all weights of the module."""
    held = {*weights_of(path, program.weights), *weights_of(path, program.tied)} - {f"{path}.{TRACKED}"}
    same = all(program.tied.get(f"{path}.{key}", f"{path}.{key}") == ref.name for key, ref in refs.items())
    return same and held == {f"{path}.{key}" for key in refs}


def _called(call: Call, path: str, layer: Layer) -> Call:
    """The call of a layer."""
    frames = tuple(frame for frame in call.frames if frame.path != path)
    return replace(call, function="", layer=path, args=layer.inputs, options={}, frames=frames)
