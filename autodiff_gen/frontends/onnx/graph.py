"""Nodes of an ONNX graph, their arguments by the names of the ops' schemas, and its inputs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ModelError, quoted
from ..imported.program import Shape
from ..imported.rules import Unsupported

# Names of TensorProto.DataType -> ours.
DTYPES = {"FLOAT": "f32", "INT64": "s32", "INT32": "s32", "UINT8": "u8", "INT8": "s8", "BOOL": "bool"}

# Attributes that may be ignored: they follow from shapes, or concern only results or dtypes that are rejected.
MEANINGLESS = {
    "dtype",
    "kernel_shape",
    "qk_matmul_output_mode",
    "saturate",
    "softmax_precision",
    "stash_type",
}
MEANINGLESS |= {"num_outputs", "seed", "storage_order"}


def dtype_named(kind: int) -> str:
    """Our name of a dtype of TensorProto. Raises Unsupported for another dtype."""
    from onnx import TensorProto

    name = TensorProto.DataType.Name(kind)
    if name not in DTYPES:
        raise Unsupported(f"converts to {name}; use FLOAT")
    return DTYPES[name]


@dataclass(frozen=True)
class OnnxNode:
    """proto: the NodeProto; number: its place in the graph."""

    proto: Any
    number: int

    @property
    def op(self) -> str:
        return str(self.proto.op_type)

    @property
    def domain(self) -> str:
        return "" if self.proto.domain == "ai.onnx" else str(self.proto.domain)

    @property
    def key(self) -> str:
        """The op's name in the table: with its domain, unless that is ONNX's."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def place(self) -> str:
        """The node's place for messages."""
        return f"node {quoted(self.proto.name)}" if self.proto.name else f"node {self.number}"


class TrackedArguments(dict[str, Any]):
    """Arguments that note which of them a rule reads, so that no attribute is ignored by mistake."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[str] = set()
        self.unusual: list[str] = []  # attributes that differ from the default

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)


def unread(given: TrackedArguments) -> list[str]:
    """Attributes of a node that its rule has not read, and that may not be ignored."""
    return [name for name in given.unusual if name not in given.read | MEANINGLESS]


def attributes_of(node: OnnxNode, given: Sequence[Any], opset: int) -> TrackedArguments:
    """Inputs and attributes by the names of the op's schema, with its default values. The inputs of a variadic
    parameter are a tuple."""
    from onnx import defs, helper

    found, schema = TrackedArguments(), _schema_of(node, opset)
    if schema is None:
        found.update({str(k): x for k, x in enumerate(given)})
    else:
        for k, formal in enumerate(schema.inputs):
            if formal.option == defs.OpSchema.FormalParameterOption.Variadic:
                found[formal.name] = tuple(given[k:])
            else:
                found[formal.name] = given[k] if k < len(given) else None
        for name, attribute in schema.attributes.items():
            if attribute.default_value.type:
                found[name] = _plain(helper.get_attribute_value(attribute.default_value))
    for a in node.proto.attribute:
        value = _plain(helper.get_attribute_value(a))
        if dict.get(found, a.name) != value:
            found.unusual.append(a.name)
        found[a.name] = value
    return found


def _schema_of(node: OnnxNode, opset: int) -> Any:
    """The schema of an op; None for an op that ONNX does not define. Raises Unsupported for an op of a later opset."""
    from onnx import defs

    if node.op in OF_ANY_OPSET and not node.domain:
        return defs.get_schema(node.op, defs.onnx_opset_version())
    try:
        return defs.get_schema(node.op, opset, node.domain)
    except defs.SchemaError:
        if defs.has(node.op, node.domain):
            raise Unsupported(f"is no op of opset {opset}") from None
        return None


def expand(model: Any, ops: set[str]) -> Any:
    """The model with ops replaced by the ops that define them in ONNX; None if none of them can be replaced."""
    from onnx import defs, inliner, shape_inference

    schemas: Sequence[Any] = defs.get_all_schemas()
    known = {s.name for s in schemas if s.has_function or s.has_context_dependent_function}
    defined = [("", op) for op in ops & known]
    if not defined:
        return None
    model = _with_defaults(model, ops & known)
    try:
        inferred = shape_inference.infer_shapes(model)
        return inliner.inline_selected_functions(inferred, defined, inline_schema_functions=True)
    except (
        RuntimeError,
        shape_inference.InferenceError,
    ):  # as for the unknown types of omitted inputs
        return None


def _with_defaults(model: Any, ops: set[str]) -> Any:
    """The model with the default values of these ops' attributes written out, which the inliner leaves out."""
    from onnx import defs

    made = type(model)()
    made.CopyFrom(model)
    opset = next((o.version for o in model.opset_import if not o.domain), 1)
    for node in made.graph.node:
        if node.op_type in ops and not node.domain and defs.has(node.op_type, opset, ""):
            given = {a.name for a in node.attribute}
            for name, attribute in defs.get_schema(node.op_type, opset, "").attributes.items():
                if attribute.default_value.type and name not in given:
                    node.attribute.append(attribute.default_value)
    return made


def _plain(value: Any) -> Any:
    """An attribute as strings and tuples of Python. Floats of 32 bits become their shortest decimal numbers: 0.01, not
    0.00999999977."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return float(str(np.float32(value)))
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value


def inputs_of(given: Any, name: str) -> tuple[str, Shape]:
    """The dtype and the shape of a graph's input; the extent of a free batch is None. Raises ModelError."""
    from onnx import TensorProto

    tensor = given.type.tensor_type
    kind = TensorProto.DataType.Name(tensor.elem_type)
    if kind not in DTYPES:
        raise ModelError(f"{name}: the input {quoted(given.name)} is {kind}; convert the network to FLOAT")
    if not tensor.HasField("shape"):
        raise ModelError(f"{name}: the input {quoted(given.name)} has no shape; export the network with one")
    shape = tuple(d.dim_value if d.dim_value > 0 else None for d in tensor.shape.dim)
    if None in shape[1:]:
        axis = shape.index(None, 1)
        raise ModelError(
            f"{name}: only the first axis, the batch, may have a dynamic size; the input {quoted(given.name)} has one "
            f"on axis {axis}; fix it by onnx.tools.update_model_dims"
        )
    return DTYPES[kind], shape


OF_ANY_OPSET = ("LayerNormalization",)  # onnxruntime's optimizer writes these into files of every opset
KIND, FOLDED = "pkg.torch.export.graph_signature.InputSpec.kind", "pkg.onnxscript.optimizer.folded_from"


def roles_of(graph: Any) -> dict[str, bool]:
    """Name of an initializer -> whether it is a parameter, if PyTorch's exporter says so (`dynamo=True`). Buffers are
    no parameters, and neither are values computed from several values without a parameter among them. The exporter
    keeps no record of transposed weights."""
    notes = {v.name: {p.key: p.value for p in v.metadata_props} for v in graph.value_info}
    roles = {name: note[KIND] == "PARAMETER" for name, note in notes.items() if KIND in note}
    for name, note in notes.items():
        sources = re.findall(r"'([^']*)'", note.get(FOLDED, ""))
        if len(sources) > 1 and not any("." in source or roles.get(source) for source in sources):
            roles[name] = False
    return roles
