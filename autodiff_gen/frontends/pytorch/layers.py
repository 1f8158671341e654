"""Rules of the table: convolutions, pooling, normalisation, attention and recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..imported.program import ValueRef, WeightRef
from .rules import Arguments, Converter, Rule, Unsupported, same

CONV = "input weight bias stride padding dilation groups"
TRANSPOSED = "input weight bias stride padding output_padding groups dilation"
AVERAGE = "self kernel_size stride padding ceil_mode count_include_pad divisor_override"


def _convolution(c: Converter, a: Arguments) -> Any:
    """Core ATen's convolution, one operator for all ranks."""
    axes = len(c.shape(a["weight"])) - 2
    if axes not in (1, 2):
        raise Unsupported("has three spatial axes; use conv2d")
    if a["transposed"]:
        return same(f"conv_transpose{axes}d", TRANSPOSED)(c, a)
    return same(f"conv{axes}d", CONV)(c, a)


def _batch_norm(c: Converter, a: Arguments) -> Any:
    options = {"training": a["training"], "momentum": a["momentum"], "eps": a["eps"]}
    operands = (a["input"], a.get("running_mean"), a.get("running_var"), a.get("weight"), a.get("bias"))
    return [c.emit("batch_norm", *operands, **options)]


def _functional_batch_norm(c: Converter, a: Arguments) -> Any:
    """The running statistics are results, which another call of the layer takes."""
    return [*_batch_norm(c, a), None, None, a.get("running_mean"), a.get("running_var")]


def _without_running(c: Converter, a: Arguments) -> Any:
    return _batch_norm(c, {**a, "training": False})


def _group_norm(c: Converter, a: Arguments) -> Any:
    return [same("group_norm", "input num_groups weight bias eps")(c, a)]


def _embedding(c: Converter, a: Arguments) -> Any:
    if a.get("scale_grad_by_freq") or a.get("sparse"):
        raise Unsupported("has scale_grad_by_freq or sparse, which are not supported")
    padding = a.get("padding_idx", -1)
    return c.emit("embedding", a["indices"], a["weight"], **({} if padding < 0 else {"padding_idx": padding}))


def _dropout(c: Converter, a: Arguments) -> Any:
    input, p, train = a.values()
    return input if p == 0 else c.emit("dropout", input, p, **({} if train else {"training": False}))


def _feature_dropout(c: Converter, a: Arguments) -> Any:
    input, p, train = a.values()
    name = "dropout2d" if len(c.shape(input)) == 4 else "dropout1d"
    return c.emit(name, input, p, **({} if train else {"training": False}))


def _max_pool_with_indices(c: Converter, a: Arguments) -> Any:
    return [same("max_pool2d", "self kernel_size stride padding dilation ceil_mode")(c, a)]


def _pooled(function: str, arguments: str) -> Rule:
    """PyTorch's empty stride is the size of the kernel."""
    rule = same(function, arguments)
    return lambda c, a: rule(c, {name: None if given == () else given for name, given in a.items()})


def _avg_pool3d(c: Converter, a: Arguments) -> Any:
    """Average pooling along the first of three axes, as in a local response norm: the other two become one axis of an
    image."""
    kernel, padding = a["kernel_size"], a.get("padding", (0, 0, 0))
    stride = a.get("stride") or kernel
    if {*kernel[1:], *stride[1:]} != {1} or any(padding[1:]):
        raise Unsupported("averages over several of three axes; use avg_pool2d")
    n, *sizes, height, width = (-1 if d is None else d for d in c.shape(a["self"]))
    image = c.emit("reshape", a["self"], (n, *sizes, height * width))
    along = {"kernel_size": (kernel[0], 1), "stride": (stride[0], 1), "padding": (padding[0], 0)}
    y = same("avg_pool2d", AVERAGE)(c, {**a, "self": image, **along})
    return c.emit("reshape", y, tuple(-1 if d is None else d for d in c.shapes[c.names()[0]]))


def _upsample(mode: str) -> Rule:
    def rule(c: Converter, a: Arguments) -> Any:
        size, scales = a.get("output_size"), a.get("scale_factors")
        options = {"size": size} if size is not None else {"scale_factor": scales}
        if mode != "nearest":
            options |= {"mode": mode, "align_corners": a["align_corners"]}
        return c.emit("interpolate", a["input"], **options)

    return rule


def _attention(c: Converter, a: Arguments) -> Any:
    if a.get("enable_gqa"):
        raise Unsupported("has enable_gqa=True; repeat the heads of key and value")
    return same("scaled_dot_product_attention", "query key value attn_mask dropout_p is_causal scale")(c, a)


def _recurrent(function: str, nonlinearity: str | None = None) -> Rule:
    def rule(c: Converter, a: Arguments) -> Any:
        if "params" not in a:
            raise Unsupported("has packed sequences; pad them")
        states = a["hx"] if isinstance(a["hx"], tuple) else (a["hx"],)
        layers = a["num_layers"] * (2 if a["bidirectional"] else 1)
        if len(a["params"]) != layers * (4 if a["has_biases"] else 2):
            raise Unsupported(
                "has a proj_size; train an LSTM without it, and a linear layer after it, in its place"
            )
        given = None if _are_zeros(c, states) else states if function == "lstm" else states[0]
        options = {
            "num_layers": a["num_layers"],
            "bias": a["has_biases"],
            "batch_first": a["batch_first"],
            "dropout": a["dropout"],
            "bidirectional": a["bidirectional"],
            "training": a["train"],
        }
        if nonlinearity is not None:
            options["nonlinearity"] = nonlinearity
        names: Any = c.names()
        names = (names[0], tuple(names[1:])) if function == "lstm" else names
        return c.emit_all(function, names, a["input"], given, a["params"], **options)

    return rule


def _cell(function: str, nonlinearity: str | None = None) -> Rule:
    def rule(c: Converter, a: Arguments) -> Any:
        weights = tuple(a[k] for k in ("w_ih", "w_hh", "b_ih", "b_hh") if a.get(k) is not None)
        options = {"nonlinearity": nonlinearity} if nonlinearity is not None else {}
        states = a["hx"] if isinstance(a["hx"], Sequence) else (a["hx"],)
        given = None if _are_zeros(c, states) else a["hx"]
        return c.emit_all(function, c.names(), a["input"], given, weights, **options)

    return rule


def _are_zeros(c: Converter, states: Sequence[Any]) -> bool:
    """Whether a recurrent layer begins with zeros, as it does without a state."""
    return all(isinstance(s, ValueRef | WeightRef) and s.name in c.zeros for s in states)


LAYERS: dict[str, Rule] = {
    "aten.linear": same("linear", "input weight bias"),
    "aten.conv1d": same("conv1d", CONV),
    "aten.conv2d": same("conv2d", CONV),
    "aten.conv_transpose1d": same("conv_transpose1d", TRANSPOSED),
    "aten.conv_transpose2d": same("conv_transpose2d", TRANSPOSED),
    "aten.convolution": _convolution,
    "aten.batch_norm": _batch_norm,
    "aten._native_batch_norm_legit_functional": _functional_batch_norm,
    "aten._native_batch_norm_legit_no_training": _without_running,
    "aten.instance_norm": same(
        "instance_norm", "input running_mean running_var weight bias use_input_stats momentum eps"
    ),
    "aten.layer_norm": same("layer_norm", "input normalized_shape weight bias eps"),
    "aten.native_layer_norm": lambda c, a: [
        same("layer_norm", "input normalized_shape weight bias eps")(c, a)
    ],
    "aten.rms_norm": same("rms_norm", "input normalized_shape weight eps"),
    "aten.group_norm": _group_norm,
    "aten.embedding": _embedding,
    "aten.dropout": _dropout,
    "aten.feature_dropout": _feature_dropout,
    "aten.native_dropout": lambda c, a: [_dropout(c, a)],
    "aten.max_pool1d": _pooled("max_pool1d", "self kernel_size stride padding dilation ceil_mode"),
    "aten.max_pool2d": _pooled("max_pool2d", "self kernel_size stride padding dilation ceil_mode"),
    "aten.max_pool2d_with_indices": _max_pool_with_indices,
    "aten.avg_pool1d": _pooled("avg_pool1d", "self kernel_size stride padding ceil_mode count_include_pad"),
    "aten.avg_pool2d": _pooled("avg_pool2d", AVERAGE),
    "aten.avg_pool3d": _avg_pool3d,
    "aten.adaptive_avg_pool1d": same("adaptive_avg_pool1d", "self output_size"),
    "aten.adaptive_avg_pool2d": same("adaptive_avg_pool2d", "self output_size"),
    "aten.adaptive_max_pool1d": lambda c, a: [same("adaptive_max_pool1d", "self output_size")(c, a)],
    "aten.adaptive_max_pool2d": lambda c, a: [same("adaptive_max_pool2d", "self output_size")(c, a)],
    "aten.upsample_nearest2d": _upsample("nearest"),
    "aten.upsample_bilinear2d": _upsample("bilinear"),
    "aten.scaled_dot_product_attention": _attention,
    "aten.gru": _recurrent("gru"),
    "aten.lstm": _recurrent("lstm"),
    "aten.rnn_tanh": _recurrent("rnn", "tanh"),
    "aten.rnn_relu": _recurrent("rnn", "relu"),
    "aten.gru_cell": _cell("gru_cell"),
    "aten.lstm_cell": _cell("lstm_cell"),
    "aten.rnn_tanh_cell": _cell("rnn_cell", "tanh"),
    "aten.rnn_relu_cell": _cell("rnn_cell", "relu"),
}
