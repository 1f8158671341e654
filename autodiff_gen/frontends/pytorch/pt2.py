"""Read the archive that torch.export.save writes, without PyTorch: a zip file with the graph as JSON and the weights
(torch/_export/serde/schema.py and torch/export/pt2_archive are its definition)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ...errors import ModelError, quoted, shortened
from ...reading.archive import Archive
from ...reading.fields import Malformed, field, integer, objects, only, text
from ...reading.json_text import parse
from ...reading.limits import MEMORY, NODES
from ...reading.memory import limited_memory
from ..imported.program import Shape, ValueRef
from .graph import (
    OperatorCall,
    argument_of,
    calls_numbered,
    class_name_of,
    dtype_name,
    flat_nodes,
    name_of,
    shape_of,
)
from .pt2_entries import Entries
from .pt2_weights import StoredTensor, stored_tensors
from .running_statistics import UPDATING

FIRST, LAST = 5, 8  # major versions of the graph's schema, PyTorch 2.4's and today's


@dataclass(frozen=True)
class Pt2Program:
    """inputs: names of the user's inputs; outputs: results in order; single: whether the network returns a tensor, not
    a tuple; weights: the name in the graph -> the kind (parameter, buffer, tensor_constant), the name in the
    state_dict, and whether a state_dict has it; stored: tensors by the name in the state_dict; changed: inputs that the
    network changes; updated: parameters and buffers that it changes -> their new values, without statistics of
    normalisation layers; shapes, dtypes: by the names of tensors; symbols: (input, axis) for each dynamic size;
    modules: paths in order; class_name: the class of the network."""

    nodes: Sequence[OperatorCall]
    inputs: tuple[str, ...]
    outputs: tuple[Any, ...]
    single: bool
    weights: Mapping[str, tuple[str, str, bool]]
    stored: Mapping[str, StoredTensor]
    changed: tuple[str, ...]
    updated: Mapping[str, Any]
    shapes: Mapping[str, Shape]
    dtypes: Mapping[str, str]
    symbols: frozenset[tuple[str, int]]
    modules: tuple[str, ...]
    class_name: str


def read(file: Path | IO[bytes], name: str) -> Pt2Program:
    """The program of an archive. Raises ModelError for a file that is no such archive, is damaged, or lacks weights."""
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
            f"{name} cannot be read: {what}; save it by torch.export.save of PyTorch 2.4 or later"
        )


class _Program:
    def __init__(self, archive: Archive, name: str) -> None:
        self.archive, self.name = archive, name
        self.entries = Entries(archive, name)

    def read(self) -> Pt2Program:
        file = self.entries.program()
        if file is None:
            raise ModelError(
                f"{self.name} holds no exported program: save torch.export.export(net, inputs) by torch.export.save "
                "of PyTorch 2.4 or later"
            )
        model = self.entries.json(file)
        version = integer(field(model, "schema_version", dict).get("major"), "the version")
        if not FIRST <= version <= LAST:
            raise ModelError(f"{self.name} has version {version} of the format, known are {FIRST} to {LAST}")
        module = field(model, "graph_module", dict)
        graph, signature = field(module, "graph", dict), field(module, "signature", dict)
        inputs = _Inputs(signature, self.name)
        tensors = dict(field(graph, "tensor_values", dict))
        found = flat_nodes(graph.get("nodes"), tensors)
        nodes = list(calls_numbered(found) if version < LAST else found)
        NODES.check(len(nodes), self.name, ModelError, self.archive.size)
        outputs, changed, updated = _outputs(signature, nodes, self.name)
        shapes = {n: shape_of(field(meta, "sizes", list)) for n, meta in tensors.items()}
        largest = max((math.prod(d or 1 for d in shape) for shape in shapes.values()), default=0)
        MEMORY.check(4 * largest, f"{self.name}: a tensor", ModelError, self.archive.size)
        calls = field(module, "module_call_graph", list)
        return Pt2Program(
            nodes,
            inputs.users,
            outputs,
            _is_single(calls, self.name),
            inputs.weights,
            stored_tensors(self.entries),
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


class _Inputs:
    """The inputs of the graph: the user's inputs and the stored tensors."""

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
    signature: Mapping[str, Any], nodes: Sequence[OperatorCall], network: str
) -> tuple[tuple[Any, ...], tuple[str, ...], dict[str, Any]]:
    """The user's outputs; the inputs that change; and the new values of parameters and buffers by name, without the
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
