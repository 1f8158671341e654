"""Functions: graphs with named inputs and outputs, each compiled to one C function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .. import functional as _functional  # noqa: F401  (fills the registry)
from ..errors import ModelError
from ..functional.inputs import check_outputs, largest_batch, why_not
from ..ir.graph import Graph
from ..ir.identifiers import is_identifier
from ..ir.node import INPUT, STATE, Value, topological
from ..ir.verifier import verify
from ..passes.context import Context
from ..passes.training.check_indices import check_indices
from ..passes.training.resolve_mode import resolved

if TYPE_CHECKING:
    from ..host.trainer import HostFunction


class Function:
    """A `graph` that is compiled to one C function; `on_host()` returns it as a Python callable."""

    def __init__(
        self, inputs: Sequence[Value], outputs: Mapping[str, Value], name: str, training: bool = False
    ) -> None:
        if not is_identifier(name):
            raise ModelError(f"function {name!r}: {why_not(name)}")
        for v in inputs:
            if not isinstance(v, Value) or v.node.op not in (INPUT, STATE):
                raise ModelError(f"function {name!r}: {v!r} is neither an ag.Input nor an ag.Param")
        given = {v.node for v in inputs}
        if len(given) != len(inputs):
            raise ModelError(f"function {name!r}: an input is given twice; list it once")
        names = [v.name for v in inputs]
        if len(set(names)) != len(names):
            raise ModelError(
                f"function {name!r}: two inputs are called {max(names, key=names.count)!r}; rename one"
            )
        check_outputs(f"function {name!r}: ", outputs, inputs)
        in_mode = resolved(list(outputs.values()), training)
        for node in topological(in_mode.roots):
            if node.op in (INPUT, STATE) and node not in given:
                raise ModelError(
                    f"function {name!r}: {node.results[0].name!r} is used, but not among the inputs"
                )
        self.name, self.batch = name, largest_batch(inputs)
        named = dict(zip(outputs, in_mode.roots, strict=True))
        graph = Graph(name, tuple(inputs), named, least_n=in_mode.least_n)
        self.graph = check_indices(graph, Context())
        verify(self.graph)

    def on_host(self, kernels: str = "ref") -> HostFunction:
        """The generated C compiled for the host, as a callable: arrays in the order of the inputs -> a list of arrays
        in the order of the outputs. `kernels`: backends by priority."""
        from ..host.trainer import host_function

        return host_function(self, kernels=kernels)


class Functions(tuple[Function, ...]):
    """The functions of one file: their names differ, and all with a batch axis have the same largest batch."""

    def __new__(cls, functions: Sequence[Function]) -> Functions:
        if not functions:
            raise ModelError("functions: the list is empty")
        for f in functions:
            if not isinstance(f, Function):
                raise ModelError(f"functions: expected results of ag.function, got {type(f).__name__}")
        names = [f.name for f in functions]
        if len(set(names)) != len(names):
            twice = max(names, key=names.count)
            raise ModelError(f"functions: two are called {twice!r}; give another name to ag.function")
        caps = {f.batch: f.name for f in functions if f.batch > 1}
        if len(caps) > 1:
            sizes = " and ".join(f"{name!r} has {cap}" for cap, name in caps.items())
            raise ModelError(f"functions: the batch sizes differ: {sizes}")
        return super().__new__(cls, functions)

    @property
    def batch(self) -> int:
        return max(f.batch for f in self)


def function(
    inputs: Sequence[Value],
    outputs: Sequence[Value] | Mapping[str, Value],
    name: str = "f",
    *,
    training: bool = False,
) -> Function:
    """A C function of the given inputs, which may include parameters. Outputs in a list are called out0, out1, ...

    training: whether ops that differ between the modes (batch_norm, dropout) are in training mode. A function has no
    state, so running statistics do not change; add their new values to the outputs if needed. Raises ModelError.
    """
    named = dict(outputs) if isinstance(outputs, Mapping) else {f"out{i}": v for i, v in enumerate(outputs)}
    return Function(inputs, named, name, training)
