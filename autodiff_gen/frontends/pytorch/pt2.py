"""Read the archive that torch.export.save writes, without PyTorch: a zip file with the graph as JSON and the weights as
raw arrays (PyTorch 2.9 and later; torch/_export/serde/schema.py and torch/export/pt2_archive are its definition)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError
from ..imported.program import Shape, ValueRef
from .graph import Node, argument_of, class_name_of, dtype_name, flat_nodes, shape_of

SCHEMA = 8  # the major version of the graph's schema
# ScalarType of the schema -> its NumPy dtype; others are not read.
DTYPES = {1: "u1", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 6: "f2", 7: "f4", 8: "f8", 10: "c8", 12: "?"}


TRACKED = "num_batches_tracked"  # a buffer that layers of both update


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
    try:
        with zipfile.ZipFile(file) as archive:
            return _Archive(archive, name).read()
    except OSError as error:
        raise ModelError(f"cannot read {name}: {error.strerror or error}") from None
    except zipfile.BadZipFile:
        raise ModelError(
            f"{name} is no complete archive of torch.export.save: truncated, or another format"
        ) from None
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise ModelError(
            f"{name} cannot be read: {type(error).__name__} {error}; save it by torch.export.save of PyTorch 2.13"
        ) from None


class _Archive:
    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self.archive, self.name = archive, name
        self.files = {entry.partition("/")[2]: entry for entry in archive.namelist()}

    def read(self) -> Exported:
        models = [f for f in self.files if f.startswith("models/") and f.endswith(".json")]
        if not models:
            raise ModelError(
                f"{self.name} holds no exported program: save torch.export.export(net, inputs) by torch.export.save "
                "of PyTorch 2.9 or later"
            )
        model = json.loads(self._bytes(models[0]))
        if model["schema_version"]["major"] != SCHEMA:
            raise ModelError(
                f"{self.name} has version {model['schema_version']['major']} of the format, known is {SCHEMA}"
            )
        module = model["graph_module"]
        graph, signature = module["graph"], module["signature"]
        inputs = _Inputs(signature["input_specs"])
        tensors = dict(graph["tensor_values"])
        nodes = list(flat_nodes(graph["nodes"], tensors))
        outputs, changed, updated = _outputs(signature["output_specs"], nodes)
        key = models[0].removeprefix("models/").removesuffix(".json")
        return Exported(
            nodes,
            inputs.users,
            outputs,
            _is_single(module["module_call_graph"]),
            inputs.weights,
            self._tensors("weights", key) | self._tensors("constants", key),
            changed,
            updated,
            {n: shape_of(meta["sizes"]) for n, meta in tensors.items()},
            {n: dtype_name(meta["dtype"]) for n, meta in tensors.items()},
            frozenset(
                (n, axis)
                for n in inputs.users
                if n in tensors
                for axis, size in enumerate(tensors[n]["sizes"])
                if "as_int" not in size
            ),
            tuple(entry["fqn"] for entry in module["module_call_graph"] if entry["fqn"]),
            class_name_of(graph["nodes"]),
        )

    def _bytes(self, file: str) -> bytes:
        if file not in self.files:
            raise ModelError(f"{self.name}: {file} is missing in the archive")
        return self.archive.read(self.files[file])

    def _tensors(self, kind: str, model: str) -> dict[str, Stored]:
        config = f"data/{kind}/{model}_{kind}_config.json"
        if config not in self.files:
            return {}
        found = {}
        for name, entry in json.loads(self._bytes(config))["config"].items():
            meta = entry["tensor_meta"]
            dtype = meta["dtype"]
            pickled = bool(entry.get("use_pickle"))
            if dtype not in DTYPES or (pickled and dtype_name(dtype) != "complex64"):
                raise ModelError(
                    f"{self.name}: {name!r} is {dtype_name(dtype)}, stored in a way that cannot be read; use float32"
                )
            file = f"data/{kind}/{entry['path_name']}"
            shape, strides = (tuple(s["as_int"] for s in meta[k]) for k in ("sizes", "strides"))
            offset = meta["storage_offset"]["as_int"]
            content = _storage(self._bytes(file)) if pickled else self._bytes(file)
            array = _strided(np.frombuffer(content, "<" + DTYPES[dtype]), shape, strides, offset)
            if array is None:
                raise ModelError(f"{self.name}: the weight {name!r} is truncated in the archive")
            found[name] = Stored(
                array, dtype_name(dtype), meta["requires_grad"], (file, offset, shape, strides)
            )
        return found


def _storage(saved: bytes) -> bytes:
    """The elements of one tensor in what torch.save wrote, an archive of its own."""
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        return archive.read(next(n for n in archive.namelist() if n.endswith("/data/0")))


def _strided(
    elements: NDArray[Any], shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> NDArray[Any] | None:
    """The tensor at an offset of its storage; None if that is too short."""
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

    def __init__(self, specs: Sequence[Mapping[str, Any]]) -> None:
        users: list[str] = []
        self.weights: dict[str, tuple[str, str, bool]] = {}
        for spec in specs:
            ((kind, entry),) = spec.items()
            if kind == "user_input":
                argument = entry["arg"]
                if "as_tensor" in argument:
                    users.append(argument["as_tensor"]["name"])
                elif "as_none" not in argument:
                    raise ModelError(f"an input is {next(iter(argument))[3:]}; inputs must be tensors")
            elif kind in ("parameter", "buffer", "tensor_constant"):
                persistent = kind == "parameter" or bool(entry.get("persistent"))
                self.weights[entry["arg"]["name"]] = (kind, entry[f"{kind}_name"], persistent)
            else:
                raise ModelError(f"an input of the program is a {kind}, which cannot be imported")
        self.users = tuple(users)


def _outputs(
    specs: Sequence[Mapping[str, Any]], nodes: Sequence[Node]
) -> tuple[tuple[Any, ...], tuple[str, ...], dict[str, Any]]:
    """The user's outputs; the inputs that change; and the new values of parameters and buffers by name, but for the
    statistics of normalisation layers."""
    statistics = {name for node in nodes if "batch_norm" in node.target for name in node.results}
    outputs, changed = [], []
    updated: dict[str, Any] = {}
    for spec in specs:
        ((kind, entry),) = spec.items()
        if kind == "user_output":
            outputs.append(argument_of(entry["arg"]))
        elif kind == "user_input_mutation":
            changed.append(entry["user_input_name"])
        elif kind in ("buffer_mutation", "parameter_mutation"):
            name, value = entry[kind.replace("mutation", "name")], entry["arg"]["name"]
            if value not in statistics and name.rpartition(".")[2] != TRACKED:
                updated[name] = ValueRef(value)
        elif kind != "token":
            raise ModelError(
                f"an output of the program is a {kind}; export the network alone, without its loss"
            )
    return tuple(outputs), tuple(changed), updated


def _is_single(calls: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the network returns a tensor rather than a tuple."""
    signature = next((c["signature"] for c in calls if not c["fqn"]), None)
    if signature is None or not signature.get("out_spec"):
        return True
    return json.loads(signature["out_spec"])[1]["type"] is None
