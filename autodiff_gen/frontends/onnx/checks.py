"""Check an ONNX file before anything else reads it: each name is there once, no size is below 0, the depth of graphs
and the number of nodes are within the limits, and no data are outside of its folder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import ModelError, quoted, shortened
from ...reading.limits import DEPTH, MEMORY, NODES
from ...reading.regular import open_regular

RANK = 16  # axes of a tensor at most
BOUNDARY = 1 << 31  # extents are smaller


def check(model: Any, name: str, size: int, folder: Path | None) -> None:
    """Check a model, and read its external data from files in `folder`. size: bytes of the file; folder: None for a
    model that was given as an object. Raises ModelError."""
    bodies = [model.graph, *model.functions]
    for body in bodies:
        for graph in _graphs(body, name):
            _check_texts(graph, name)
            _check_names(graph, name)
            for tensor in _tensors(graph):
                _check_tensor(tensor, name, size, folder)
    for value in model.graph.input:
        extents = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if len(extents) > RANK or any(not 0 <= d < BOUNDARY for d in extents):
            raise ModelError(
                f"{name}: the input {quoted(value.name)} has an axis below 0, or too many or large ones"
            )
    NODES.check(_inlined(model, name), name, ModelError, size)


def _graphs(body: Any, name: str) -> Iterator[Any]:
    """The graph or function `body`, and the graphs in its nodes."""
    stack = [(body, 0)]
    while stack:
        graph, depth = stack.pop()
        DEPTH.check(depth, name, ModelError)
        yield graph
        stack += [(g, depth + 1) for node in graph.node for a in node.attribute for g in _inner(a)]


def _inner(attribute: Any) -> list[Any]:
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def _tensors(graph: Any) -> Iterator[Any]:
    """The tensors of a graph and of its nodes, without the tensors of graphs inside."""
    yield from getattr(graph, "initializer", ())
    for sparse in getattr(graph, "sparse_initializer", ()):
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for a in node.attribute:
            yield from ([a.t] if a.HasField("t") else [])
            yield from a.tensors
            for sparse in [*([a.sparse_tensor] if a.HasField("sparse_tensor") else []), *a.sparse_tensors]:
                yield from (sparse.values, sparse.indices)


def _check_texts(graph: Any, name: str) -> None:
    """Raises ModelError for texts that are no UTF-8, which protobuf returns as bytes."""
    for node in graph.node:
        texts = (node.op_type, node.domain, node.name, *node.input, *node.output)
        if not all(isinstance(t, str) for t in (*texts, *(a.name for a in node.attribute))):
            raise ModelError(f"{name} has a node whose names are no UTF-8; export it anew")


def _check_names(graph: Any, name: str) -> None:
    """Raises ModelError for two values of one name. An initializer may have the name of an input, whose default value
    it is then."""
    initializers = [t.name for t in getattr(graph, "initializer", ())]
    computed = [n for node in graph.node for n in node.output if n]
    inputs = [i if isinstance(i, str) else i.name for i in graph.input]
    for names in (initializers + computed, inputs + computed):
        seen: set[str] = set()
        for one in names:
            if one in seen:
                raise ModelError(f"{name} has two values of the name {quoted(one)}; export it anew")
            seen.add(one)


def _check_tensor(tensor: Any, name: str, size: int, folder: Path | None) -> None:
    place = f"{name}: the weight {quoted(tensor.name)}"
    if len(tensor.dims) > RANK or any(not 0 <= d < BOUNDARY for d in tensor.dims):
        raise ModelError(f"{place} has the shape {shortened(str(list(tensor.dims)))}; export it anew")
    MEMORY.check(math.prod(tensor.dims), place, ModelError, size)
    if tensor.data_location == tensor.EXTERNAL:
        _read_external(tensor, place, folder)


def _read_external(tensor: Any, place: str, folder: Path | None) -> None:
    """Read the data of a tensor from a file in the network's folder into the tensor."""
    if folder is None:
        raise ModelError(f"{place} is in another file; give the path of the .onnx file")
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    path = folder / location
    try:
        is_inside = location and "\0" not in location and path.resolve().is_relative_to(folder.resolve())
        exists = is_inside and path.is_file()
    except OSError:  # the name is too long
        is_inside = exists = False
    if not is_inside:
        raise ModelError(
            f"{place} is in the file {quoted(location)}, which is not in the folder of the network"
        )
    try:
        offset, length = (int(entries[k]) if k in entries else None for k in ("offset", "length"))
    except ValueError:
        offset = length = -1
    missing = ModelError(f"{place} is in the file {quoted(location)} beside it, which is missing or short")
    if not exists:
        raise missing
    with open_regular(path, ModelError) as file:
        held = file.seek(0, 2)
        offset = offset or 0
        length = held - offset if length is None else length
        if offset < 0 or length < 0 or offset + length > held:
            raise missing
        file.seek(offset)
        tensor.raw_data = file.read(length)
    del tensor.external_data[:]
    tensor.data_location = tensor.DEFAULT


def _inlined(model: Any, name: str) -> int:
    """The number of nodes when the functions of the file are inlined. Raises ModelError for a function that calls
    itself, and for two functions of one name."""
    bodies = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
    if len(bodies) < len(model.functions):
        raise ModelError(f"{name} has two functions of one name; export it anew")
    counts: dict[Any, int] = {}
    open_: set[Any] = set()

    def count(body: Any) -> int:
        total = 0
        for node in _nodes(body):
            key = node.domain, node.op_type, getattr(node, "overload", "")
            total += of_function(key, bodies) if key in bodies else 1
        return total

    def of_function(key: Any, bodies: Mapping[Any, Any]) -> int:
        if key in open_:
            raise ModelError(f"{name}: the function {quoted(key[1])} calls itself; export it anew")
        if key not in counts:
            open_.add(key)
            DEPTH.check(len(open_), name, ModelError)
            counts[key] = count(bodies[key])
            open_.discard(key)
        return counts[key]

    for key in bodies:
        of_function(key, bodies)
    return count(model.graph)


def _nodes(body: Any) -> Iterator[Any]:
    """The nodes of a graph and of the graphs in it."""
    stack = [body]
    while stack:
        graph = stack.pop()
        for node in graph.node:
            yield node
            stack += [g for a in node.attribute for g in _inner(a)]
