"""Names of inputs in a model file: identifiers made from the names in the imported file."""

from __future__ import annotations

import keyword
import re
from collections.abc import Container

from ...ir.identifiers import KEYWORDS, is_reserved
from .program import ImportedProgram, ValueRef

# Names that a model file uses, and keywords of Python and C.
TAKEN = {
    *KEYWORDS,
    *keyword.kwlist,
    "FOLDER",
    "F",
    "Path",
    "ag",
    "constants",
    "file",
    "float",
    "getattr",
    "init",
}
TAKEN |= {"loss", "model", "module", "net", "nn", "np", "optim", "setattr", "super"}
OF_A_LOSS = {"output", "scores", "target"}  # names that a model file uses in addition, if it adds a loss


def input_names(program: ImportedProgram) -> dict[str, str]:
    """Name of an input -> its name in a model file: `net` -> net_."""
    is_loss = isinstance(program.outputs, ValueRef) and program.shapes[program.outputs.name] == ()
    taken = TAKEN if is_loss else TAKEN | OF_A_LOSS
    found: dict[str, str] = {}
    for name in program.inputs:
        found[name] = identifier(name, {*taken, *found.values()})
    return found


def identifier(name: str, taken: Container[str]) -> str:
    """A name as an identifier of Python and C, with `_` appended while it is taken: `input:0` -> input_0."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    found = f"x{found}" if not found[:1].isalpha() or is_reserved(found) else found
    while found in taken:
        found += "_"
    return found
