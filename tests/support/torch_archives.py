"""Archives of torch.export.save as older versions of PyTorch write them, made of one of today's."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

import torch

LAYOUTS = ("2.8", "2.7", "2.5")  # each is written by this version of PyTorch; 2.6 has the layout of 2.7
_FILES = {"weights": "serialized_state_dict.pt", "constants": "serialized_constants.pt"}


def older(data: bytes, layout: str) -> bytes:
    """The archive in the layout of an older version."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as new, zipfile.ZipFile(made, "w") as old:
        program = json.loads(new.read("archive/models/model.json"))
        if layout == "2.5":
            program = _of_schema_7(program)
            program["schema_version"] = {"major": 7, "minor": 3}
        is_of_folders = layout == "2.8"
        name = "archive/models/model.json" if is_of_folders else "serialized_exported_program.json"
        old.writestr(name, json.dumps(program))
        for kind, file in _FILES.items():
            place = f"archive/data/{kind}/model.pt" if is_of_folders else file
            old.writestr(place, _saved(_tensors(new, kind)))
        place = "archive/data/sample_inputs/model.pt" if is_of_folders else "serialized_example_inputs.pt"
        old.writestr(place, new.read("archive/data/sample_inputs/model.pt"))
        if is_of_folders:
            for file in new.namelist():
                if not file.startswith(("archive/data/", "archive/models/")):
                    old.writestr(file, new.read(file))
        else:
            old.writestr("version", f"{program['schema_version']['major']}.3")
    return made.getvalue()


def _of_schema_7(value: Any) -> Any:
    """JSON of PyTorch 2.5: an absent argument is an empty list, and calls of a module have no numbers."""
    if isinstance(value, str):
        return re.sub(r"@\d+(?=,)", "", value)
    if isinstance(value, dict):
        return {k: [] if k == "as_none" else _of_schema_7(v) for k, v in value.items()}
    return [_of_schema_7(v) for v in value] if isinstance(value, list) else value


def _tensors(archive: zipfile.ZipFile, kind: str) -> dict[str, Any]:
    """The tensors of a kind; the tensors of one entry share memory."""
    config = f"archive/data/{kind}/model_{kind}_config.json"
    if config not in archive.namelist():
        return {}
    storages: dict[str, Any] = {}
    found = {}
    for name, entry in json.loads(archive.read(config))["config"].items():
        meta, file = entry["tensor_meta"], entry["path_name"]
        if file not in storages:
            content = archive.read(f"archive/data/{kind}/{file}")
            storages[file] = (
                torch.load(io.BytesIO(content))
                if entry["use_pickle"]
                else torch.frombuffer(bytearray(content), dtype=_DTYPES[meta["dtype"]])
            )
        sizes, strides = ([s["as_int"] for s in meta[k]] for k in ("sizes", "strides"))
        tensor = torch.as_strided(storages[file], sizes, strides, meta["storage_offset"]["as_int"])
        is_parameter = kind == "weights" and tensor.is_floating_point() and meta["requires_grad"]
        found[name] = torch.nn.Parameter(tensor) if is_parameter else tensor
    return found


_DTYPES = {4: torch.int32, 5: torch.int64, 7: torch.float32, 12: torch.bool}  # of the schema's ScalarType


def _saved(tensors: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    torch.save(tensors, file)
    return file.getvalue()
