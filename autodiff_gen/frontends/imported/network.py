"""The network of a program: its printed text is executed, so that the module and model.py are the same."""

from __future__ import annotations

import builtins
import linecache
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import functional as F
from ... import init, nn
from ...autodiff import grad
from ...errors import AutodiffError, ModelError, quoted
from ...functional.inputs import Input
from ...ir.node import Value
from ...ir.types import Dim
from ...reading.limits import DEPTH
from .input_names import input_names
from .problems import importing
from .program import CONSTANT, ImportedProgram, ValueRef, references
from .source import network_source
from .text import OF_MODULES
from .verify_source import BUILTINS, checked

Arrays = Mapping[str, NDArray[Any]]
BATCH = 4  # samples of the call that checks the network


def network(program: ImportedProgram, name: str) -> nn.Module:
    """The network with its weights. name: the original's name, for messages. Raises ModelError for calls that our
    functions reject, for results of other shapes than the original's, and for weights that are not finite."""
    with importing(name):
        _check_names(program, name)
        text, program, tree = checked(name, partial(network_source, program))
        weights, constants = arrays(program)
        code = compile(tree, file_of(text, name), "exec")
        _check(_made(code, constants, name), program, name)
        net = _made(code, constants, name)
    try:
        net.load_state_dict(weights)
    except ModelError as error:  # of a weight that is not finite
        raise ModelError(f"{name} cannot be imported: {error}") from None
    return net


def _check_names(program: ImportedProgram, name: str) -> None:
    """Raises ModelError for a weight with the name of an attribute that every module has, and for modules that are
    nested more deeply than the limit allows."""
    for weight, own in program.weights.items():
        attribute = weight.rpartition(".")[2]
        if own.role != CONSTANT and (attribute in OF_MODULES or attribute.startswith("__")):
            raise ModelError(
                f"{name}: the weight {quoted(weight)} has the name of a method of modules; rename it"
            )
    deepest = max((p.count(".") for p in (*program.weights, *program.modules)), default=0)
    DEPTH.check(deepest, f"{name}: its tree of modules", ModelError)


def arrays(program: ImportedProgram) -> tuple[Arrays, Arrays]:
    """The state_dict, and the constants, by name."""
    own = {n: w.array for n, w in program.weights.items() if w.role != CONSTANT}
    return own, {n: w.array for n, w in program.weights.items() if w.role == CONSTANT}


def file_of(text: str, name: str) -> str:
    """The file name of a text for tracebacks; notes the lines, so that tracebacks show them."""
    file = f"<imported {name}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    return file


def _made(code: CodeType, constants: Arrays, name: str) -> nn.Module:
    names = {"F": F, "ag": SimpleNamespace(grad=grad), "init": init, "nn": nn, "np": np}
    with _statements(name):
        net = execute(code, {**names, "constants": constants})["net"]
    assert isinstance(net, nn.Module)
    return net


def execute(code: CodeType, names: Mapping[str, Any]) -> dict[str, Any]:
    """Execute a printed text that knows these names and a few of Python's; returns its global names."""
    own = {name: getattr(builtins, name) for name in ("__build_class__", *BUILTINS)}
    made = {"__builtins__": own, "__name__": "imported", **names}
    exec(code, made)
    return made


def _check(net: nn.Module, program: ImportedProgram, name: str) -> None:
    """Call the network once. Raises ModelError for results of other shapes than the program's."""
    inputs, shown = [], input_names(program)
    for k, dtype in program.inputs.items():
        shape = program.shapes[k]
        sizes = [BATCH if d is None else d for d in shape]
        inputs.append(Input(shown[k], sizes, dtype=dtype, batch_axis=0 if shape[:1] == (None,) else None))
    with _statements(name):
        found = net(*inputs)
    values = [v for v in _flat(found) if isinstance(v, Value)]
    for value, ref in zip(values, references(program.outputs), strict=True):
        wanted = program.shapes.get(ref.name) if isinstance(ref, ValueRef) else None
        if wanted is not None and tuple(None if isinstance(d, Dim) else d for d in value.shape) != wanted:
            raise ModelError(
                f"{name}: the result {quoted(ref.name)} has shape {list(wanted)}, imported {value.type}"
            )


def _flat(results: Any) -> list[Any]:
    return [r for part in results for r in _flat(part)] if isinstance(results, tuple) else [results]


@contextmanager
def _statements(name: str) -> Iterator[None]:
    """Raises errors of the block with the name of the network, and with the statement that raised them."""
    try:
        yield
    except AutodiffError as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == f"<imported {name}>"]
        statement = f"`{frames[-1].line}`: " if frames and frames[-1].line else ""
        raise ModelError(f"{name} cannot be imported: {statement}{error}") from None
