"""Rules of the table: normalisation. Running statistics are buffers, scales and shifts parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..imported.program import BUFFER, ValueRef, Weight
from ..imported.rules import Arguments, Rule, Unsupported
from .folding import ConstantTensor

ROLES = {
    "scale": "weight",
    "B": "bias",
    "input_mean": "running_mean",
    "input_var": "running_var",
    "mean": "running_mean",  # of opset 13
    "var": "running_var",
}

IDENTITY = {"weight": 1, "bias": 0}


def _affine(**given: Any) -> dict[str, Any]:
    """Scale and shift by role; empty if both are constants that change nothing. Exporters write such constants for
    layers with affine=False, and PyTorch writes them when it exports a GroupNorm as an InstanceNormalization of its
    groups."""
    operands = {role: x for role, x in given.items() if x is not None}
    constants = all(isinstance(x, ConstantTensor) and not x.initializer for x in operands.values())
    if constants and all(np.all(x.array == IDENTITY[role]) for role, x in operands.items()):
        return {}
    return operands


def _batch_norm(c: Any, a: Arguments) -> Any:
    """BatchNorm in evaluation mode unless the file says otherwise; train() lets it learn."""
    kinds = {"running_mean": {"kind": BUFFER}, "running_var": {"kind": BUFFER}}
    given = {role: a[n] for n, role in ROLES.items() if n in a}
    given |= {"weight": None, "bias": None, **_affine(weight=given["weight"], bias=given["bias"])}
    given = {role: c.weight(x, role, **kinds.get(role, {})) for role, x in given.items()}
    if not isinstance(a.get("input_mean", a.get("mean")), ValueRef):
        # The layer's counter of batches, which files do not have.
        path = given["running_mean"].name.rpartition(".")[0]
        c.weights[f"{path}.num_batches_tracked"] = Weight(np.zeros((), np.int32), BUFFER)
    training, momentum = bool(a.get("training_mode")), 1 - a["momentum"]
    momentum = float(f"{momentum:.7g}")
    results = _statistics(c, a, given, momentum) if training and any(map(c.is_read, c.names()[1:])) else []
    operands = (given[k] for k in ("running_mean", "running_var", "weight", "bias"))
    options = {"training": training, "eps": a["epsilon"]}
    if momentum != 0.1:
        options["momentum"] = momentum
    return [c.emit("batch_norm", a["X"], *operands, **options), *results]


def _statistics(c: Any, a: Arguments, given: Any, momentum: float) -> list[Any]:
    """The new running statistics. ONNX uses the biased variance of the batch."""
    x = a["X"]
    axes = tuple(k for k in range(len(c.shape(x))) if k != 1)
    new = c.emit("mean", x, axes), c.emit("var", x, axes, correction=0)
    old = given["running_mean"], given["running_var"]
    return [c.emit("lerp", o, n, momentum) for o, n in zip(old, new, strict=True)]


def _instance_norm(c: Any, a: Arguments) -> Any:
    given = {role: c.weight(x, role) for role, x in _affine(weight=a["scale"], bias=a["B"]).items()}
    return c.emit("instance_norm", a["input"], **given, eps=a["epsilon"])


def _layer_norm(c: Any, a: Arguments) -> Any:
    x, axis = a["X"], a["axis"] % len(c.shape(a["X"]))
    shape = c.shape(x)[axis:]
    affine = _affine(weight=a["Scale"], bias=a["B"])
    given = [_of_shape(c, x, role, shape) for role, x in affine.items()]
    if None in shape:
        raise Unsupported("normalises the batch; use another axis")
    results = [c.emit("layer_norm", x, shape, *given, eps=a["epsilon"])]
    if len(c.names()) > 1:  # the mean, and the reciprocal of the standard deviation
        axes = tuple(range(axis, len(c.shape(x))))
        mean = c.emit("mean", x, axes, keepdim=True)
        variance = c.emit("mean", c.emit("square", c.emit("{} - {}", x, mean)), axes, keepdim=True)
        results += [mean, c.emit("rsqrt", c.emit("{} + {}", variance, a["epsilon"]))]
    return results


def _of_shape(c: Any, given: Any, role: str, shape: Any) -> Any:
    """A weight, broadcast to `shape`."""
    if c.shape(given) != tuple(shape) and not isinstance(given, ConstantTensor):
        return c.emit("broadcast_to", given, shape)
    if c.shape(given) != tuple(shape):
        return c.weight(given, role, lambda array: np.broadcast_to(array, shape))
    return c.weight(given, role)


def _rms_norm(c: Any, a: Arguments) -> Any:
    shape = c.shape(a["X"])[a["axis"] % len(c.shape(a["X"])) :]
    if None in shape:
        raise Unsupported("normalises the batch; use another axis")
    return c.emit("rms_norm", a["X"], shape, _of_shape(c, a["scale"], "weight", shape), eps=a["epsilon"])


def _group_norm(c: Any, a: Arguments) -> Any:
    channels, groups = c.shape(a["X"])[1], a["num_groups"]
    if c.shape(a["scale"]) != (channels,):
        raise Unsupported(
            "has one scale for each group; export it with opset 21, which has one for each channel"
        )
    weight, bias = c.weight(a["scale"], "weight"), c.weight(a["bias"], "bias")
    return c.emit("group_norm", a["X"], groups, weight, bias, eps=a["epsilon"])


def _attention(c: Any, a: Arguments) -> Any:
    """Attention. If several heads of queries share a head of keys and values, that head is repeated."""
    for name in ("past_key", "past_value", "nonpad_kv_seqlen"):
        if a.get(name) is not None:
            raise Unsupported(f"has {name}; a network that is trained sees whole sequences")
    if a.get("softcap") or len(c.names()) > 1:
        raise Unsupported("has softcap or returns more than the result; write it as matmul and softmax")
    q, k, v = (c.operand(a[n]) for n in ("Q", "K", "V"))
    rank = len(c.shape(q))
    if rank == 3:
        counts = a["q_num_heads"], a["kv_num_heads"], a["kv_num_heads"]
        q, k, v = (_heads(c, x, h) for x, h in zip((q, k, v), counts, strict=True))
    repeats = (c.shape(q)[1] or 1) // (c.shape(k)[1] or 1)
    if repeats > 1:
        k, v = (c.emit("repeat_interleave", x, repeats, 1) for x in (k, v))
    mask = c.operand(a["attn_mask"]) if a.get("attn_mask") is not None else None
    options: dict[str, Any] = {"is_causal": True} if a["is_causal"] else {}
    if mask is not None:
        options["attn_mask"] = mask
    scale = a.get("scale")
    if scale is not None and not math.isclose(scale, (c.shape(q)[-1] or 1) ** -0.5, rel_tol=1e-6):
        options["scale"] = scale
    y = c.emit("scaled_dot_product_attention", q, k, v, **options)
    if rank == 4:
        return [y]
    n, heads, length, width = c.shape(y)
    return [
        c.emit("reshape", c.emit("permute", y, (0, 2, 1, 3)), (-1 if n is None else n, length, heads * width))
    ]


def _heads(c: Any, x: Any, heads: int) -> Any:
    """[n, length, heads * width] -> [n, heads, length, width]."""
    n, length, width = c.shape(x)
    split = c.emit("reshape", x, (-1 if n is None else n, length, heads, width // heads))
    return c.emit("permute", split, (0, 2, 1, 3))


NORMALIZATION: dict[str, Rule] = {
    "Attention": _attention,
    "BatchNormalization": _batch_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
}
