"""Write an imported network to a folder: model.py, weights.npz, and constants.npz if it has constants."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np

from ...errors import ToolError
from ...owned_files import write_files
from ...reading.npz import npz_of, read_npz
from ...reading.regular import read_bytes
from .input_names import input_names
from .network import Arrays, arrays
from .program import ImportedProgram, ValueRef
from .source import network_source
from .text import literal
from .verify_source import checked

IMPORTED = ", imported by autodiff-gen."  # follows the name of the imported file in model.py
HEAD = '''"""{name}{imported} The model at the end is yours to edit: loss, optimizer, batch;
net.MODULE.requires_grad_(False) freezes a module, as in PyTorch."""

from pathlib import Path

{numpy}import autodiff_gen as ag
from autodiff_gen import {modules}

FOLDER = Path(__file__).parent
'''

CONSTANTS = """
constants = ag.load_arrays(FOLDER / "constants.npz")
"""

LOAD = """
net.load_state_dict(ag.load_arrays(FOLDER / "weights.npz"))

"""

MODEL = """{inputs}
{output} = net({names})
{target}
model = ag.Model(
    inputs=[{names}],
    targets=[target],
    outputs={{"{output}": {output}}},
    loss=nn.{loss}()({output}, target),
    optimizer=optim.SGD(lr=0.01),
)
"""
MODEL_OF_A_LOSS = """{inputs}
loss = net({names})
model = ag.Model(inputs=[{names}], targets=[], outputs={{"loss": loss}}, loss=loss, optimizer=optim.SGD(lr=0.01))
"""


def write_folder(
    program: ImportedProgram, name: str, folder: Path, weights_only: bool = False, force: bool = False
) -> list[Path]:
    """Write the files; returns their paths. Raises ToolError, and writes nothing, if model.py has another text, which
    somebody may have edited, unless `force`. weights_only: model.py is not written; raises ToolError unless the weights
    have the names and shapes of the files in the folder."""
    text, program, _ = checked(name, partial(network_source, scores_of(program)))
    weights, constants = arrays(program)
    model = checked(name, lambda: (model_text(program), None))[0]
    uses = {
        "functional as F": "F.",
        "init": "init.",
        "nn": "nn.",
        "optim": "optim.",
    }
    modules = ", ".join(m for m, word in uses.items() if re.search(rf"\b{re.escape(word)}", text + model))
    numpy = "import numpy as np\n\n" if re.search(r"\bnp\.", text) else ""
    head = HEAD.format(name=in_a_docstring(name), imported=IMPORTED, numpy=numpy, modules=modules)
    head += CONSTANTS if constants else ""
    files = {"weights.npz": weights, **({"constants.npz": constants} if constants else {})}
    path, source = folder / "model.py", f"{head}\n\n{text}{LOAD}{model}"
    written: dict[str, str | bytes] = {} if weights_only else {"model.py": source}
    if weights_only:
        _check_weights(files, folder)
    elif path.exists() and not force:
        line = _first_difference(read_bytes(path, ToolError).decode(errors="replace"), source)
        if line:
            raise ToolError(
                f"{path}:{line} differs from the import and would be lost: choose another --out, replace it by "
                "--force, or renew only the weights by --weights-only"
            )
    return write_files(folder, {**written, **{file: npz_of(held) for file, held in files.items()}}, force)


def in_a_docstring(name: str) -> str:
    """The name of a file without characters that end a docstring or begin an escape."""
    return "".join(c if c.isprintable() and c not in '"\\' else "_" for c in name)


def _first_difference(text: str, source: str) -> int:
    """The number, from 1, of the first line in which two texts differ other than by the name of the imported file; 0 if
    there is none."""
    pairs = zip_longest(*(t.partition(IMPORTED)[2].split("\n") for t in (text, source)))
    return next((k for k, (one, other) in enumerate(pairs, 1) if one != other), 0)


def _check_weights(files: Mapping[str, Arrays], folder: Path) -> None:
    """Raises ToolError unless the files in the folder have arrays of the same names and shapes."""
    for file, held in files.items():
        try:
            shapes = {name: array.shape for name, array in read_npz(folder / file, ToolError).items()}
        except ToolError:
            raise ToolError(f"--weights-only: {folder} has no {file} of an import") from None
        other = [n for n in {**shapes, **held} if n not in held or shapes.get(n) != np.shape(held[n])]
        if other:
            raise ToolError(
                f"--weights-only: {folder / file} has {other[0]!r} otherwise; import the network to another --out"
            )


def scores_of(program: ImportedProgram) -> ImportedProgram:
    """The program for a loss. If it has one result of floats, other results, such as labels, are left out. A softmax of
    [batch, classes] at its end is left out too, because the cross-entropy contains it."""
    output = program.outputs
    if isinstance(output, tuple):
        floats = [o for o in output if not (isinstance(o, ValueRef) and o.name in program.integers)]
        output = floats[0] if len(floats) == 1 else output
        program = replace(program, outputs=output)
    last = next((call for call in program.calls if call.results == (getattr(output, "name", None),)), None)
    if last is None or last.function != "softmax" or len(program.shapes[output.name]) != 2:
        return program
    return replace(program, outputs=last.args[0])


def model_text(program: ImportedProgram) -> str:
    """Python text of a first model: scores [batch, classes] have the cross-entropy as loss, other results the mean
    squared error, and one number is the loss itself. Only a comment for a network with several results, whose loss only
    its author knows."""
    if not isinstance(program.outputs, ValueRef):
        return "# The network has several results: write the model here.\n"
    shapes = {name: literal(_example(shape)) for name, shape in program.shapes.items()}
    shown = input_names(program)
    result = program.shapes[program.outputs.name]
    classes = len(result) == 2 and (result[1] or 0) > 1
    loss = "CrossEntropyLoss" if classes else "MSELoss"
    only = program.shapes[next(iter(program.inputs))] if len(program.inputs) == 1 else ()
    if (
        result != () and list(program.inputs.values()) == ["f32"] and only[:1] in ((None,), (1,))
    ):  # The short form is for one float input whose batch is free, or 1; otherwise the batch is a number.
        (name,) = program.inputs
        call = f"net, input={shapes[name]}, loss=nn.{loss}(), optimizer=optim.SGD(lr=0.01)"
        return f"model = ag.Model.supervised(\n    {call}\n)\n"
    inputs = [
        f"{shown[name]} = ag.Input({literal(shown[name])}, {shapes[name]}"
        + ("" if dtype == "f32" else f", dtype={dtype!r}")
        + ")"
        for name, dtype in program.inputs.items()
    ]
    names = ", ".join(shown.values())
    if result == ():
        return MODEL_OF_A_LOSS.format(inputs="\n".join(inputs), names=names)
    target = f'target = ag.Input("target", {shapes[program.outputs.name]})'
    if classes:
        target = f'target = ag.Input("target", {literal(_example(result)[:1])}, dtype="s32")'
    output = "scores" if classes else "output"
    return MODEL.format(inputs="\n".join(inputs), output=output, names=names, target=target, loss=loss)


def _example(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    """The shape of a batch of one sample."""
    return tuple(1 if d is None else d for d in shape)
