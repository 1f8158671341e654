"""A copy of a .pt2 file that torch.export.load reads without executing code of the file. The original would not be
safe: torch.export.load unpickles its example inputs and tensors, calls any function of PyTorch that a node names, and
evaluates expressions of sizes as Python."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ..errors import ModelError, quoted
from ..frontends.pytorch.convert import is_known
from ..frontends.pytorch.pt2_entries import EXAMPLES, PICKLED, PROGRAM, in_archive
from ..reading.archive import Archive
from ..reading.json_text import parse

# Allowed operators that the importer does not know: checks of sizes, and regions.
_CHECKS = re.compile(
    r"aten\._assert\w*(\.\w+)?|aten\.sym_\w+(\.\w+)?|higher_order\.wrap_with_\w+|_operator\.(ge|gt|le|lt|eq|ne|and_)"
    r"|torch\.sym_(not|max|min|ite)",
    re.ASCII,
)
# The allowed text of an expression: symbols, numbers and functions of sympy. PyTorch would execute other calls, too.
_FUNCTIONS = "Add|Mul|Pow|Integer|Rational|Max|Min|Mod|PythonMod|FloorDiv|CeilDiv|Eq|Ne|Lt|Le|Gt|Ge"
_SYMBOL = r"Symbol\('[a-z]+\d+'(, [a-z]+=(True|False))*\)"
_EXPRESSION = re.compile(rf"({_SYMBOL}|({_FUNCTIONS})\(|[su]\d+|\d+|[ +*/(),<>=-])*", re.ASCII)
_FOLDERS = ("data/weights/", "data/constants/")


def safe_copy(path: Path) -> io.BytesIO:
    """The copy. Raises ModelError for a file with operators, expressions or objects that are not allowed."""
    made = io.BytesIO()
    with (
        Archive(path, path.name, ModelError, "archive of torch.export.save") as archive,
        zipfile.ZipFile(made, "w") as copy,
    ):
        pickled: set[str] = set()
        for entry in archive.names():
            file = in_archive(entry)
            if file.startswith(_FOLDERS) and file.endswith("_config.json"):
                pickled |= _pickled(parse(archive.read_text(entry), path.name, ModelError), path.name)
        for entry in archive.names():
            file = in_archive(entry)
            if file == PROGRAM or file.startswith("models/"):
                program = parse(archive.read_text(entry), path.name, ModelError, unique=False)
                copy.writestr(entry, json.dumps(_checked(program, path.name)))
                key = file.removeprefix("models/").removesuffix(".json")
                examples = f"data/sample_inputs/{key}.pt" if file != PROGRAM else EXAMPLES
                copy.writestr(entry.removesuffix(file) + examples, b"")
            elif file.startswith(_FOLDERS) or file in PICKLED.values():
                data, last = archive.read(entry), file.rpartition("/")[2]
                is_pickle = last in pickled or last.endswith(".pt")
                copy.writestr(entry, _without_code(data, path.name) if is_pickle else data)
            elif file != EXAMPLES and not file.startswith(("data/", "extra/")):
                copy.writestr(entry, archive.read(entry))
    made.seek(0)
    return made


def _pickled(config: Any, name: str) -> set[str]:
    """The entries that are pickled tensors. Raises ModelError for other objects."""
    found = set()
    for entry in config["config"].values():
        file = str(entry["path_name"])
        if not file.startswith(("weight_", "tensor_")):
            raise ModelError(f"{name} has an object that is no tensor; save the network without it")
        if entry.get("use_pickle"):
            found.add(file)
    return found


def _without_code(data: bytes, name: str) -> bytes:
    """A pickled tensor, or a dict of them, pickled anew. Raises ModelError for other data."""
    try:
        if not data.startswith(b"PK"):  # not a zip archive: PyTorch 2.5 executes parts of older formats
            raise ValueError
        tensor = torch.load(io.BytesIO(data), weights_only=True)
    except Exception:  # pickles raise errors of many kinds
        raise ModelError(f"{name} has a weight that is no tensor; save the file again") from None
    made = io.BytesIO()
    torch.save(tensor, made)
    return made.getvalue()


def _checked(program: Any, name: str) -> Any:
    """The program without the code of its guards, and with only the metadata that checks read. Raises ModelError for
    operators and expressions that are not allowed."""
    if type(program) is dict and program.get("guards_code"):
        program["guards_code"] = []
    for part in _objects(program):
        expression = part.get("expr_str")
        if expression is not None and not (type(expression) is str and _EXPRESSION.fullmatch(expression)):
            raise ModelError(
                f"{name} has an expression of sizes that no check evaluates; save the network again"
            )
        if "target" in part and "metadata" in part:
            target = str(part["target"]).removeprefix("torch.ops.")
            if not is_known(target) and not _CHECKS.fullmatch(target):
                raise ModelError(
                    f"{name} has the operator {quoted(target)}, which no check runs; leave it out"
                )
            kept = ("nn_module_stack", "stack_trace")
            part["metadata"] = {k: v for k, v in part["metadata"].items() if k in kept}
    return program


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in a value of JSON."""
    stack = [value]
    while stack:
        one = stack.pop()
        if type(one) is dict:
            yield one
            stack += one.values()
        elif type(one) is list:
            stack += one
