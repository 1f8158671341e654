"""Read an ONNX file by the package onnx. Reject files that are no float networks, and convert files of an opset before
13."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

from ...errors import ModelError, ToolError, listed, pip_install
from ...reading.memory import limited_memory
from ...reading.regular import read_bytes
from .checks import check

FIRST_OPSET = 13
LARGEST = 2**31 - 1  # bytes of a protobuf message
DOMAINS = ("", "ai.onnx")
OTHER = "autodiff_gen"
# Ops of quantised networks.
QUANTISED = [
    "ConvInteger",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "MatMulInteger",
    "QLinearConv",
    "QLinearMatMul",
    "QuantizeLinear",
]


def read(file: Any, name: str) -> Any:
    """The ModelProto of a path, or a given ModelProto, converted to a known opset and without functions; weights in
    external files are loaded. Raises ModelError for a file that is no ONNX, is damaged, or is no float network;
    ToolError without the package onnx."""
    if importlib.util.find_spec("onnx") is None:
        raise ToolError(
            f"ONNX networks need the package onnx, which is not installed; run: {pip_install('onnx')}"
        )
    import onnx

    path = Path(file) if isinstance(file, str | Path) else None
    model = file if path is None else _loaded(onnx, path, name)
    if not isinstance(model, onnx.ModelProto):
        raise ModelError(f"from_onnx: expected a path or an onnx.ModelProto, got {type(model).__name__}")
    size = model.ByteSize()
    with limited_memory(name, ModelError, size):
        check(model, name, size, None if path is None else path.parent)
        return _float_network(model, name)


def _float_network(model: Any, name: str) -> Any:
    """The model with ops of a known opset, and without functions. Raises ModelError."""
    import onnx

    if not model.HasField("graph") or not model.graph.output or not model.opset_import:
        raise ModelError(f"{name} is no ONNX network: it has no graph, or no opset")
    opset = next((o.version for o in model.opset_import if o.domain in DOMAINS), None)
    known = onnx.defs.onnx_opset_version()
    if opset is not None and opset > known:
        raise ModelError(
            f"{name} has opset {opset}, the installed package onnx knows {known}; update it, or export anew"
        )
    if opset is not None and opset < FIRST_OPSET:
        model = _converted(model, name, opset)
    quantised = sorted({node.op_type for node in model.graph.node if node.op_type in QUANTISED})
    if quantised:
        raise ModelError(
            f"{name} is quantised ({listed(quantised)}); import the float network, and quantise it by ag.quant"
        )
    if model.functions:
        from onnx import inliner

        try:
            model = inliner.inline_local_functions(model)
        except RuntimeError:
            raise ModelError(
                f"{name} cannot be imported: it is damaged, or of an unknown form; export it anew"
            ) from None
    return model


def _converted(model: Any, name: str, opset: int) -> Any:
    """A model of an earlier opset, converted by ONNX's version converter. Raises ModelError if the converter cannot.
    During the conversion, ops that ONNX does not have are in another domain."""
    from onnx import ModelProto, defs, helper, shape_inference, version_converter

    moved = ModelProto()
    moved.CopyFrom(model)
    for node in moved.graph.node:
        if node.domain in DOMAINS and not defs.has(node.op_type):
            node.domain = OTHER
    moved.opset_import.append(helper.make_opsetid(OTHER, 1))
    try:
        converted = version_converter.convert_version(moved, FIRST_OPSET)
        for node in converted.graph.node:
            node.domain = "" if node.domain == OTHER else node.domain
        return converted
    except (
        RuntimeError,
        ValueError,
        shape_inference.InferenceError,
        version_converter.ConvertError,
    ) as error:
        (*_, last) = ["unknown", *str(error).strip().splitlines()]
        reason = re.sub(r"\[?\w*Error\]?:? *", "", last)[:160]
        raise ModelError(
            f"{name} has opset {opset}, which onnx.version_converter cannot convert to {FIRST_OPSET}, the first "
            f"that is read: {reason}; export it anew"
        ) from None


def _loaded(onnx: Any, path: Path, name: str) -> Any:
    """The model of a file. Raises ModelError."""
    from google.protobuf.message import DecodeError

    data = read_bytes(path, ModelError)
    if len(data) > LARGEST:
        raise ModelError(
            f"{name} has {len(data):,} bytes, a protobuf message at most {LARGEST:,}; {_EXTERNAL}"
        )
    try:
        model = onnx.load_model_from_string(data)
    except (DecodeError, ValueError):
        raise ModelError(f"{name} is no complete ONNX file: truncated, or another format") from None
    return model


_EXTERNAL = "save it with save_as_external_data=True, which puts the weights into a file beside it"
