"""Read a network that was quantised elsewhere: the format of docs/quantization.md, and the format of the int8 networks
that MIT published with MCUNet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import AutodiffError, ModelError, quoted, shortened
from ...functional.quantized_arguments import check_convention
from ...ir.quantization import sums_of, within_sums
from ...ops.quantized.limits import OPEN
from ...reading.json_text import parse
from ...reading.npz import NUMBERS, WORDS, read_npz
from .network import LIMITS, OPS, SCALE, Layer, Network, check_keys

INPUT = "input"


def load(source: str | Path | Mapping[str, Any], clamp_gradient: str = OPEN) -> Network:
    """A quantised network from an .npz file or a dict of arrays with the entry `layers`, a list of layers as JSON.
    clamp_gradient: as for Network. Raises ModelError for a file of another format, for missing arrays, layers that do
    not fit together and another clamp_gradient."""
    check_convention("quant.load", clamp_gradient, ModelError)
    if not isinstance(source, str | Path | Mapping):
        raise ModelError(f"quant.load: give a path or a dict of arrays, not {type(source).__name__}")
    arrays = (
        dict(source)
        if isinstance(source, Mapping)
        else dict(read_npz(Path(source), ModelError, NUMBERS + WORDS))
    )
    where = "the dict" if isinstance(source, Mapping) else str(source)
    if "layers" not in arrays:
        raise ModelError(f"{where} has no entry 'layers': it is no quantised network")
    given = arrays.pop("layers")
    layers = (
        given
        if isinstance(given, list | tuple)
        else parse(str(given).encode(), f"{where}: the entry 'layers'", ModelError)
    )
    if not isinstance(layers, list | tuple) or not layers or not all(isinstance(e, dict) for e in layers):
        raise ModelError(f"{where}: the entry 'layers' must be a list of objects, one for each layer")
    try:
        is_mcunet = "kind" in layers[0]
        found = _mcunet(layers, arrays) if is_mcunet else [_layer(e, k) for k, e in enumerate(layers, 1)]
        network = Network(found, arrays, clamp_gradient)
    except KeyError as error:
        raise ModelError(f"{where}: the entry or array {shortened(str(error))} is missing") from None
    except (ValueError, TypeError, AttributeError):
        raise ModelError(f"{where}: the entry 'layers' has values of other types than a network's") from None
    except AutodiffError as error:
        raise (error if isinstance(source, Mapping) else ModelError(f"{source}: {error}")) from None
    network.source = "" if isinstance(source, Mapping) else str(source)
    return network


def _layer(entry: Mapping[str, Any], number: int) -> Layer:
    """The layer of an entry; `number` counts from 1."""
    named = dict(entry)
    for key in ("name", "op"):
        if key not in named:
            which = f"layer {quoted(named['name'])}" if "name" in named else f"layer {number} of 'layers'"
            raise ModelError(f"{which}: the key {quoted(key)} is missing")
    name, op, inputs = named.pop("name"), named.pop("op"), named.pop("inputs", [])
    check_keys(name, op, named)
    if "scale" in OPS[op].keys and "scale" not in named:
        raise ModelError(f"layer {quoted(name)}: {op} needs the scale of its result")
    if not isinstance(inputs, list | tuple) or not all(isinstance(i, str) for i in inputs):
        raise ModelError(f"layer {quoted(name)}: inputs must be a list of names, not {quoted(inputs)}")
    fields = {k: named.pop(k) for k in SCALE + LIMITS if k in named}
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in named.items()}
    return Layer(name, op, tuple(inputs), **fields, options=options)


# The networks of MCUNet: convolutions in the order of execution, and residual sums with the input of their block


def _mcunet(entries: Sequence[Mapping[str, Any]], arrays: dict[str, Any]) -> list[Layer]:
    first = entries[0]
    found = [Layer(INPUT, "quantize", scale=first["x_scale"], zero_point=first["x_zero"])]
    inputs_of: dict[str, str] = {}  # block -> the layer before it
    for entry in entries:
        name, block = entry["name"], entry["name"].rpartition(".")[0]
        inputs_of.setdefault(block, found[-1].name)
        if entry["kind"] == "global average pool":
            found.append(Layer(name, "avg_pool2d", (found[-1].name,)))
            continue
        result = {"scale": entry["y_scale"], "zero_point": entry["y_zero"]}
        if entry["kind"] == "add":
            found.append(Layer(name, "add", (inputs_of[block], found[-1].name), **result))
            continue
        kernel = entry["kernel"]
        options = {"stride": entry["stride"], "padding": (kernel - 1) // 2, "groups": entry["groups"]}
        found.append(Layer(name, "conv2d", (found[-1].name,), **result, options=options))
        arrays[f"{name}.weight_scales"] = arrays.pop(f"{name}.w_scales")
        arrays[f"{name}.bias"] = _without_overflow(entry, arrays[f"{name}.weight"], arrays[f"{name}.bias"])
    return found


def _without_overflow(entry: Mapping[str, Any], weight: Any, bias: Any) -> Any:
    """The biases, limited so that no sum overflows. Only biases of channels with tiny weights change: they are at a
    limit of s32. The limit changes a result by far less than one unit."""
    return within_sums(bias, sums_of(weight, entry["x_zero"]))
