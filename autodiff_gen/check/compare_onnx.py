"""`check NET.onnx`: compare the results of an imported network with the reference implementation of ONNX, for random
inputs, in evaluation mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frontends.imported.network import network
from ..frontends.imported.program import ImportedProgram
from ..frontends.onnx.read import read
from ..functional.inputs import Input
from ..ir.interpreter import evaluate
from ..ir.node import STATE, Value, topological
from ..report.text_table import table
from .compare_torch import flat
from .reference_onnx import operators

BATCH = 4
TOLERANCE = 1e-4  # of float32, relative to the largest element


def compare(program: ImportedProgram, file: Any, name: str, seed: int = 0) -> tuple[str, bool]:
    """The report, and whether all results agree. file: the path or ModelProto that was imported."""
    from onnx.reference import ReferenceEvaluator

    model = read(file, name)
    constants = {t.name for t in model.graph.initializer}
    given = [i.name for i in model.graph.input if i.name not in constants]
    generator = np.random.default_rng(seed)
    arrays: dict[str, Any] = {}
    inputs: list[Value] = []
    for given_name, dtype in program.inputs.items():
        shape = [BATCH if d is None else d for d in program.shapes[given_name]]
        floats = dtype == "f32"
        arrays[given_name] = generator.normal(size=shape) if floats else generator.integers(0, 2, shape)
        free = program.shapes[given_name][:1] == (None,)
        inputs.append(Input(given_name, shape, dtype, 0 if free else None))
    net = network(program, name)
    net.eval()
    outputs = flat(net(*inputs))
    feeds = dict(zip(inputs, arrays.values(), strict=True))
    for node in topological(outputs):
        if node.op is STATE:
            state = node.attrs["state"]
            feeds[node.results[0]] = state.stored(state.init.array())
    ours = evaluate(outputs, feeds)
    kinds = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    theirs = ReferenceEvaluator(model, new_ops=operators()).run(
        None,
        {n: a.astype(_numpy(kinds[n])) for n, a in zip(given, arrays.values(), strict=True)},
    )
    names = [o.name for o in model.graph.output]
    errors = [_error(a, b) for a, b in zip(ours, theirs, strict=True)]
    rows = [(n, f"{e:.1e}", "ok" if e <= TOLERANCE else "WRONG") for n, e in zip(names, errors, strict=True)]
    good = max(errors) <= TOLERANCE
    return "\n".join(
        [
            f"{name}: the imported network compared with the reference implementation of ONNX, batch {BATCH}",
            table(("result", "error", ""), rows, right=(1,)),
            "everything agrees; errors are relative to the largest element" if good else "FAILED",
        ]
    ), good


def _numpy(kind: int) -> Any:
    from onnx import helper

    return helper.tensor_dtype_to_np_dtype(kind)


def _error(ours: Any, theirs: Any) -> float:
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if a.shape != b.shape or not np.isfinite(a).all():
        return float("inf")
    return float(np.abs(a - b).max(initial=0.0) / (np.abs(b).max(initial=0.0) or 1.0))
