"""ONNX's own tests of ops as networks of the importer: each case is a graph of one op, or of the ops that an op is
defined by, with arrays for its inputs and outputs."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

from autodiff_gen.frontends.imported.network import network
from autodiff_gen.frontends.imported.program import references
from autodiff_gen.frontends.onnx.convert import convert
from autodiff_gen.frontends.onnx.table import TABLE
from autodiff_gen.functional.inputs import Input
from autodiff_gen.ir.node import Value
from autodiff_gen.passes.training.resolve_mode import resolved

# Inputs that are weights or settings, by their places: initializers of the network that is imported.
WEIGHTS = {
    "AffineGrid": (1,),
    "BatchNormalization": (1, 2, 3, 4),
    "Clip": (1, 2),
    "Compress": (1,),
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "CumSum": (1,),
    "Dropout": (1, 2),
    "Expand": (1,),
    "GRU": (1, 2, 3, 4),
    "Gemm": (1, 2),
    "GroupNormalization": (1, 2),
    "InstanceNormalization": (1, 2),
    "LSTM": (1, 2, 3, 4, 7),
    "LayerNormalization": (1, 2),
    "OneHot": (1, 2),
    "PRelu": (1,),
    "Pad": (1, 2, 3),
    "RMSNormalization": (1,),
    "RNN": (1, 2, 3, 4),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    **{
        f"Reduce{kind}": (1,)
        for kind in ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
    },
}
TYPES = {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL}
FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE}
INTEGER = {"And", "Equal", "Not", "Or", "Trilu", "Xor"}  # ops that have no cases with floats
DOUBLE = {"CumSum", "Einsum", "ReduceLogSumExp"}  # ops whose cases are of float64: computed in float32
FOLDED = ("Constant", "Shape", "Size", "Range", "ConstantOfShape", "If")


def ops_of(model):
    return {f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in model.graph.node}


@functools.cache
def cases():
    """The cases of ops that the table has, by name: float networks of static shapes, opset 13 and later."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = {case.name.removeprefix("test_"): case for case in collect_testcases(None)}
    good = {name: case for name, case in found.items() if _belongs(case.model) and _has_elements(case)}
    return {name: case for name, case in good.items() if name.partition("_expanded")[0] in good}


def _belongs(model):
    values = [*model.graph.input, *model.graph.output]
    ops = ops_of(model)
    types = TYPES | ({onnx.TensorProto.DOUBLE} if ops & DOUBLE else set())
    if not all(v.type.HasField("tensor_type") and v.type.tensor_type.elem_type in types for v in values):
        return False
    floats = any(v.type.tensor_type.elem_type in FLOATS for v in values)
    if not ops <= {*TABLE, *FOLDED} or not ops - {*FOLDED} or not (floats or ops & INTEGER):
        return False
    opset = next((o.version for o in model.opset_import if o.domain == ""), 0)
    return all(
        onnx.defs.get_schema(op, 13, "").since_version <= opset for op in ops if onnx.defs.has(op, 13, "")
    )


def _has_elements(case):
    """An array of C has at least one."""
    return all(np.size(array) for arrays in case.data_sets[0] for array in arrays)


def op_of(name):
    """The op of a case; an expanded case has the ops of the op's definition."""
    ops = ops_of(cases()[name].model)
    return next(iter(ops)) if len(ops) == 1 else None


def _weights_of(name):
    """The names of the inputs that become initializers."""
    base = name.partition("_expanded")[0]
    case = cases().get(base)
    if case is None or op_of(base) is None:
        case = cases()[name]
    (node, *_) = case.model.graph.node
    return {node.input[k] for k in WEIGHTS.get(node.op_type, ()) if k < len(node.input) and node.input[k]}


def program_of(name):
    """The program of a case, and the arrays of its inputs and outputs."""
    case = cases()[name]
    inputs, outputs = case.data_sets[0]
    model, weights = onnx.ModelProto(), _weights_of(name)
    model.CopyFrom(case.model)
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    given = []
    for value, array in zip(list(model.graph.input), inputs, strict=True):
        if value.name in weights and len(model.graph.input) > 1:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
            model.graph.input.remove(value)
        else:
            given.append(np.asarray(array))
    return convert(model, name), given, [np.asarray(o) for o in outputs]


def network_of(name, place=None):
    """Inputs, results, the arrays for the inputs and for the results. place: the network's number among others,
    from whose names its own differ."""
    program, arrays, wanted = program_of(name)
    net = network(program, name)
    if place is not None:
        for named in (net.named_parameters, net.named_buffers):
            list(named(f"n{place}"))  # gives them their names
    inputs = [
        Input(n if place is None else f"n{place}_{n}", a.shape, program.inputs[n])
        for n, a in zip(program.inputs, arrays, strict=True)
    ]
    found = net(*inputs)
    assert len(list(references(program.outputs))) == len(wanted)
    return inputs, resolved(_flat(found), _trains(name)).roots, arrays, wanted


def _trains(name):
    """Whether a case is one of the training mode, by an attribute."""
    settings = [a for node in cases()[name].model.graph.node for a in node.attribute]
    return any(a.name == "training_mode" and a.i for a in settings)


def _flat(results):
    return [results] if isinstance(results, Value) else [v for part in results for v in _flat(part)]
