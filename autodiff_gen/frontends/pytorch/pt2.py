"""Read the archive that torch.export.save writes, without PyTorch: a zip file with the graph as JSON and the weights as
raw arrays (PyTorch 2.9 and later; torch/_export/serde/schema.py and torch/export/pt2_archive are its definition)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError, quoted, shortened
from ...reading.archive import Archive
from ...reading.fields import Malformed, each, field, integer, objects, only, text
from ...reading.json_text import parse
from ...reading.limits import MEMORY, NODES
from ...reading.memory import limited_memory
from ..imported.program import Shape, ValueRef
from .graph import RANK, Node, argument_of, class_name_of, dtype_name, flat_nodes, name_of, shape_of
from .running_statistics import UPDATING

SCHEMA = 8  # the major version of the graph's schema
# ScalarType of the schema -> its NumPy dtype; others are not read.
DTYPES = {1: "u1", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 6: "f2", 7: "f4", 8: "f8", 10: "c8", 12: "?"}


@dataclass(frozen=True)
class Stored:
    """A tensor of the archive. where: the file and the place in it, equal for tied weights."""

    array: NDArray[Any]
    dtype: str
    requires_grad: bool
    where: Any


@dataclass(frozen=True)
class Exported:
    """inputs: names of the user's inputs; outputs: results in order; single: whether the network returns one tensor;
    weights: the name in the graph -> the kind (parameter, buffer, tensor_constant), the name in the state_dict, whether
    that has it; stored: tensors by this name; changed: inputs that the network changes; updated: parameters and buffers
    that it changes by their names in the state_dict, where the program gives their new values; shapes, dtypes: of
    tensors; symbols: the inputs and axes of dynamic sizes; modules: paths in order; class_name: of the
    network."""

    nodes: Sequence[Node]
    inputs: tuple[str, ...]
    outputs: tuple[Any, ...]
    single: bool
    weights: Mapping[str, tuple[str, str, bool]]
    stored: Mapping[str, Stored]
    changed: tuple[str, ...]
    updated: Mapping[str, Any]
    shapes: Mapping[str, Shape]
    dtypes: Mapping[str, str]
    symbols: frozenset[tuple[str, int]]
    modules: tuple[str, ...]
    class_name: str


def read(file: Path | IO[bytes], name: str) -> Exported:
    """The program of an archive. Raises ModelError for a file that is none, is damaged, or lacks weights."""
    with (
        Archive(file, name, ModelError, "archive of torch.export.save") as archive,
        limited_memory(name, ModelError),
    ):
        try:
            return _Program(archive, name).read()
        except Malformed as error:
            what = str(error)
        except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError):
            what = "it is damaged, or of an unknown form"
        raise ModelError(
            f"{name} cannot be read: {what}; save it by torch.export.save of PyTorch 2.9 or later"
        )


class _Program:
    def __init__(self, archive: Archive, name: str) -> None:
        self.archive, self.name = archive, name
        self.files: dict[str, str] = {}
        for entry in archive.names():
            file = entry.partition("/")[2]
            if self.files.setdefault(file, entry) != entry:
                raise ModelError(f"{name} has two entries {quoted(file)}; save it again")
        self.bytes = 0  # of the weights that were read

    def read(self) -> Exported:
        models = [f for f in self.files if f.startswith("models/") and f.endswith(".json")]
        if not models:
            raise ModelError(
                f"{self.name} holds no exported program: save torch.export.export(net, inputs) by torch.export.save "
                "of PyTorch 2.9 or later"
            )
        model = self._json(models[0])
        version = integer(field(model, "schema_version", dict).get("major"), "the version")
        if version != SCHEMA:
            raise ModelError(f"{self.name} has version {version} of the format, known is {SCHEMA}")
        module = field(model, "graph_module", dict)
        graph, signature = field(module, "graph", dict), field(module, "signature", dict)
        inputs = _Inputs(signature, self.name)
        tensors = dict(field(graph, "tensor_values", dict))
        nodes = list(flat_nodes(graph.get("nodes"), tensors))
        NODES.check(len(nodes), self.name, ModelError, self.archive.size)
        outputs, changed, updated = _outputs(signature, nodes, self.name)
        key = models[0].removeprefix("models/").removesuffix(".json")
        shapes = {n: shape_of(field(meta, "sizes", list)) for n, meta in tensors.items()}
        largest = max((math.prod(d or 1 for d in shape) for shape in shapes.values()), default=0)
        MEMORY.check(4 * largest, f"{self.name}: a tensor", ModelError, self.archive.size)
        calls = field(module, "module_call_graph", list)
        return Exported(
            nodes,
            inputs.users,
            outputs,
            _is_single(calls, self.name),
            inputs.weights,
            self._tensors("weights", key) | self._tensors("constants", key),
            changed,
            updated,
            shapes,
            {n: dtype_name(meta.get("dtype")) for n, meta in tensors.items()},
            frozenset(
                (n, axis)
                for n in inputs.users
                for axis, extent in enumerate(shapes.get(n, ()))
                if extent is None
            ),
            tuple(text(entry["fqn"], "fqn") for entry in calls if entry["fqn"]),
            class_name_of(field(graph, "nodes", list)),
        )

    def _bytes(self, file: str) -> bytes:
        if file not in self.files:
            raise ModelError(f"{self.name}: {shortened(file)} is missing in the archive")
        return self.archive.read(self.files[file])

    def _json(self, file: str, unique: bool = False) -> Any:
        if file not in self.files:
            raise ModelError(f"{self.name}: {shortened(file)} is missing in the archive")
        return parse(self.archive.read_text(self.files[file]), self.name, ModelError, unique)

    def _tensors(self, kind: str, model: str) -> dict[str, Stored]:
        config = f"data/{kind}/{model}_{kind}_config.json"
        if config not in self.files:
            return {}
        listed = field(self._json(config, unique=True), "config", dict)
        return {name: self._tensor(kind, name, entry) for name, entry in listed.items()}

    def _tensor(self, kind: str, name: str, entry: Any) -> Stored:
        place = f"{self.name}: the weight {quoted(name)}"
        meta = field(entry, "tensor_meta", dict)
        dtype = integer(meta.get("dtype"), "dtype")
        pickled = bool(entry.get("use_pickle"))
        if dtype not in DTYPES or (pickled and dtype_name(dtype) != "complex64"):
            raise ModelError(
                f"{place} is {dtype_name(dtype)}, stored in a way that cannot be read; use float32"
            )
        file = f"data/{kind}/{text(entry['path_name'], 'path_name')}"
        shape, strides = (_numbers(meta, k) for k in ("sizes", "strides"))
        offset = integer(only(meta["storage_offset"], "storage_offset")[1], "storage_offset", 0)
        if len(shape) != len(strides) or len(shape) > RANK:
            raise ModelError(f"{place} has {len(shape)} axes and {len(strides)} strides; save the file again")
        elements = np.dtype("<" + DTYPES[dtype])
        self.bytes += math.prod(shape) * elements.itemsize
        MEMORY.check(self.bytes, place, ModelError, self.archive.size)
        content = _storage(self._bytes(file), place) if pickled else self._bytes(file)
        array = _strided(np.frombuffer(content, elements), shape, strides, offset)
        if array is None:
            raise ModelError(f"{place} is truncated in the archive; save the file again")
        trained = field(meta, "requires_grad", bool)
        return Stored(array, dtype_name(dtype), trained, (file, offset, shape, strides))


def _numbers(meta: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """Sizes or strides."""
    return each(meta[name], name, lambda size: integer(only(size, name)[1], name, 0))


def _storage(saved: bytes, place: str) -> bytes:
    """The elements of one tensor in what torch.save wrote, an archive of its own; its pickle is not read."""
    with Archive(saved, place, ModelError, "archive of torch.save") as archive:
        return archive.read(next(n for n in archive.names() if n.endswith("/data/0")))


def _strided(
    elements: NDArray[Any], shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> NDArray[Any] | None:
    """The tensor at an offset of its storage; None if that is too short. Sizes, strides and offset are not negative."""
    if 0 in shape:
        return np.zeros(shape, elements.dtype)
    last = offset + sum((d - 1) * s for d, s in zip(shape, strides, strict=True))
    if last >= elements.size:
        return None
    view = np.lib.stride_tricks.as_strided(
        elements[offset:], shape, [s * elements.itemsize for s in strides], writeable=False
    )
    return view.copy()


class _Inputs:
    """The inputs of the graph: the user's, and what is stored."""

    def __init__(self, signature: Mapping[str, Any], network: str) -> None:
        users: list[str] = []
        self.weights: dict[str, tuple[str, str, bool]] = {}
        for spec in objects(signature, "input_specs"):
            kind, entry = only(spec, "an input")
            if kind == "user_input":
                form, value = only(field(entry, "arg", dict), "an input")
                if form == "as_tensor":
                    users.append(name_of(value))
                elif form != "as_none":
                    raise ModelError(
                        f"{network}: an input is {shortened(form.removeprefix('as_'))}; inputs must be tensors"
                    )
            elif kind in ("parameter", "buffer", "tensor_constant"):
                persistent = kind == "parameter" or bool(entry.get("persistent"))
                name = name_of(field(entry, "arg", dict))
                self.weights[name] = (kind, text(entry[f"{kind}_name"], "the name of a weight"), persistent)
            else:
                raise ModelError(
                    f"{network}: an input of the program is a {shortened(kind)}, which cannot be imported"
                )
        twice = next((n for n in users if users.count(n) > 1 or n in self.weights), None)
        if twice is not None:
            raise Malformed(f"the input {quoted(twice)} is there twice")
        self.users = tuple(users)


def _outputs(
    signature: Mapping[str, Any], nodes: Sequence[Node], network: str
) -> tuple[tuple[Any, ...], tuple[str, ...], dict[str, Any]]:
    """The user's outputs; the inputs that change; and the new values of parameters and buffers by name, but for the
    statistics of normalisation layers."""
    statistics = {name for node in nodes if node.key in UPDATING for name in node.results}
    outputs, changed = [], []
    updated: dict[str, Any] = {}
    for spec in objects(signature, "output_specs"):
        kind, entry = only(spec, "an output")
        if kind == "user_output":
            outputs.append(argument_of(entry["arg"]))
        elif kind == "user_input_mutation":
            changed.append(name_of(entry, "user_input_name"))
        elif kind in ("buffer_mutation", "parameter_mutation"):
            name = text(entry[kind.replace("mutation", "name")], "the name of a weight")
            value = name_of(field(entry, "arg", dict))
            if value not in statistics:
                updated[name] = ValueRef(value)
        elif kind != "token":
            raise ModelError(
                f"{network}: an output of the program is a {shortened(kind)}; export only the network, "
                "without its loss"
            )
    return tuple(outputs), tuple(changed), updated


def _is_single(calls: Sequence[Any], name: str) -> bool:
    """Whether the network returns a tensor rather than a tuple."""
    signature = next((c["signature"] for c in calls if not c["fqn"]), None)
    if signature is None or not signature.get("out_spec"):
        return True
    tree = parse(field(signature, "out_spec", str).encode(), name, ModelError)
    return tree[1]["type"] is None
