"""Int8 networks in the format of those that MIT published with MCUNet, and their arithmetic: in float64, where scales
are multiplied and results rounded once, halves to even; or with the integers of CMSIS-NN, rounded twice (its default)
or once (CMSIS_NN_USE_SINGLE_ROUNDING)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from autodiff_gen.ir.quantization import fixed_points

Rounding: TypeAlias = Literal["float64", "twice", "once"]


def published() -> list[Path]:
    """The networks in $AUTODIFF_DATA/mcunet, which a user does not have."""
    data = os.environ.get("AUTODIFF_DATA", "")
    return sorted(Path(data, "mcunet").glob("*.npz")) if data else []


def random_network(rng: np.random.Generator, size: int = 16) -> dict[str, Any]:
    """A convolution, blocks of expand, depthwise and project, two of them with a residual sum, and a classifier."""
    layers: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    now = {"size": size, "channels": 3, "scale": 1 / 127.5, "zero": 0}

    def conv(
        name: str, kind: str, out: int, kernel: int, stride: int, groups: int, scale: float, zero: int
    ) -> None:
        cin = now["channels"]
        layers.append(
            {"name": name, "kind": kind, "cin": cin, "cout": out, "kernel": kernel, "stride": stride, "groups": groups,
             "x_scale": now["scale"], "x_zero": now["zero"], "y_scale": scale, "y_zero": zero}
        )  # fmt: skip
        weight = rng.integers(-127, 128, (out, cin // groups, kernel, kernel)).astype(np.int8)
        arrays[f"{name}.weight"] = weight
        typical = (
            73 * kernel * np.sqrt(cin // groups) * 40 * now["scale"] / scale
        )  # of the sums, in units of the result
        arrays[f"{name}.w_scales"] = (rng.uniform(50, 150, out) / typical).astype(np.float32)
        arrays[f"{name}.bias"] = rng.integers(-2000, 2000, out).astype(np.int32)
        now.update(channels=out, scale=scale, zero=zero)

    conv("first_conv", "conv", 8, 3, 2, 1, 6 / 255, -128)
    for k, (out, kernel, stride) in enumerate([(8, 3, 1), (8, 5, 1), (12, 7, 2)]):
        before = dict(now)
        conv(f"blocks.{k}.pointwise1", "pointwise1", 3 * now["channels"], 1, 1, 1, 6 / 255, -128)
        conv(
            f"blocks.{k}.depthwise",
            "depthwise",
            now["channels"],
            kernel,
            stride,
            now["channels"],
            6 / 255,
            -128,
        )
        conv(f"blocks.{k}.pointwise2", "pointwise2", out, 1, 1, 1, 0.07 + 0.01 * k, 5 * k - 9)
        if out == before["channels"] and stride == 1:
            ends = {
                "x_scale": before["scale"],
                "x_zero": before["zero"],
                "y_scale": 0.1 + 0.02 * k,
                "y_zero": 7 - k,
            }
            layers.append({"name": f"blocks.{k}.residual", "kind": "add", **ends})
            now.update(scale=ends["y_scale"], zero=ends["y_zero"])
    layers.append({"name": "avgpool", "kind": "global average pool"})
    conv("classifier", "conv", 10, 1, 1, 1, 0.12, -20)
    # A channel that is always at its lower limit, with a bias that leaves no room for the sum.
    arrays["first_conv.bias"][1] = -(2**31)
    arrays["first_conv.w_scales"][1] = 1e-6
    return {"layers": json.dumps(layers), **arrays}


def simulated(arrays: dict[str, Any], x: Any, rounding: Rounding = "float64") -> dict[str, Any]:
    """The result of each layer, from the layers before it as integers: x is [n, 3, rows, columns]."""
    layers = json.loads(str(arrays["layers"]))
    q = np.clip(np.rint(x.astype(np.float64) * 127.5), -128, 127)
    found = {"input": q}
    first: dict[str, Any] = {}
    last: dict[str, Any] = {}
    for layer in layers:
        name, block = layer["name"], layer["name"].rpartition(".")[0]
        first.setdefault(block, q)
        if layer["kind"] == "global average pool":
            q = _mean(q, rounding)
        else:
            if layer["kind"] == "add":
                terms = [
                    (first[block] - layer["x_zero"], layer["x_scale"]),
                    (q - last["y_zero"], last["y_scale"]),
                ]
                v = summed(terms, layer["y_scale"], rounding)
            else:
                sums = _convolved(q - layer["x_zero"], arrays[f"{name}.weight"], layer)
                sums += arrays[f"{name}.bias"].astype(np.float64)[:, None, None]
                ratios = layer["x_scale"] * arrays[f"{name}.w_scales"].astype(np.float64) / layer["y_scale"]
                v = scaled(sums, ratios[:, None, None], rounding)
                last = layer
            q = np.clip(v + layer["y_zero"], -128, 127)
        found[name] = q
    return found


def _mean(q: Any, rounding: Rounding) -> Any:
    """Halves away from 0 with integers."""
    mean = q.mean((2, 3), keepdims=True)
    return np.rint(mean) if rounding == "float64" else np.sign(mean) * np.floor(np.abs(mean) + 0.5)


def summed(terms: list[tuple[Any, float]], scale: float, rounding: Rounding) -> Any:
    if rounding == "float64":
        return np.rint(sum(v * of for v, of in terms) / scale)
    common = 2 * max(of for _, of in terms)
    wide = sum(scaled(v * 2**20, np.array(of / common), rounding) for v, of in terms)
    return scaled(wide, np.array(common / (2**20 * scale)), rounding)


def scaled(sums: Any, ratios: Any, rounding: Rounding) -> Any:
    """sums * ratios, rounded; of integers with 31 bits of the ratios."""
    if rounding == "float64":
        return np.rint(sums * ratios)
    multiplier, shift = (a.reshape(ratios.shape).astype(np.float64) for a in fixed_points(ratios.reshape(-1)))
    if rounding == "once":
        return np.floor(sums * multiplier / 2.0 ** (31 - shift) + 0.5)
    high = ((sums * 2.0 ** np.maximum(shift, 0)).astype(np.int64) * multiplier.astype(np.int64) + 2**30) >> 31
    v = high / 2.0 ** np.maximum(-shift, 0)
    return np.sign(v) * np.floor(np.abs(v) + 0.5)


def _convolved(x: Any, w: Any, layer: dict[str, Any]) -> Any:
    kernel, stride, pad = layer["kernel"], layer["stride"], (layer["kernel"] - 1) // 2
    wide = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = ((d - 1) // stride + 1 for d in x.shape[2:])
    y = np.zeros((x.shape[0], layer["cout"], rows, columns))
    for i, j in np.ndindex(kernel, kernel):
        taken = wide[:, :, i : i + stride * rows : stride, j : j + stride * columns : stride]
        taps = w[:, :, i, j].astype(np.float64)
        y += (
            taken * taps[:, 0, None, None]
            if layer["groups"] > 1
            else np.tensordot(taken, taps, ([1], [1])).transpose(0, 3, 1, 2)
        )
    return y
