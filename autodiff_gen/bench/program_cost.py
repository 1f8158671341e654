"""The costs of one program (instructions counted in QEMU or by valgrind, memory, code size), and its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen.program import Program
from ..errors import ToolError
from ..host.trainer import host_trainer
from ..model.loader import LoadedFile
from ..model.model import Model
from .callgrind import count_calls
from .executable import Builder
from .linker_map import text_bytes
from .probes import entry_probes
from .program import data
from .qemu_counter import count, plugin
from .report import number
from .step_benchmark import TRAINING, plain


@dataclass(frozen=True)
class Cost:
    """The costs and results of a program. train: instructions of one call of each training entry; predict: instructions
    of one call; both are means of several calls. arena: bytes; text: bytes of code and constants; lines: lines of
    generated C. uncounted: the reason why the program was not run. reference_*: results with `ref` kernels on the
    host."""

    train: float | None = None
    predict: float | None = None
    arena: int = 0
    text: int | None = None
    lines: int = 0
    uncounted: str = ""
    losses: tuple[float, ...] = ()
    reference_losses: tuple[float, ...] = ()
    reference_outputs: tuple[float, ...] = ()

    @property
    def line(self) -> str:
        """The costs as a line of text."""
        counts = (number(x or 0) for x in (self.train, self.predict))
        counted = self.uncounted or "{} instructions of a step, {} of predict".format(*counts)
        return f"{counted}, arena {self.arena:,}, text {self.text or 0:,} bytes, {self.lines:,} lines"


def cost(
    program: Program, files: Mapping[str, str], builder: Builder, folder: Path, plugins: Path, steps: int
) -> Cost:
    """The costs of a program that makes `steps` steps, built in `folder`; `plugins`: the folder of QEMU's plugin.
    Raises ToolError."""
    lines = sum(files[f"{program.name}.{end}"].count("\n") for end in ("c", "h"))
    known = Cost(arena=program.struct_bytes - program.state_bytes, lines=lines)
    try:
        elf = builder.executable(program, files, folder)
    except ToolError as error:
        if "overflowed" not in str(error):
            raise
        return Cost(arena=known.arena, lines=lines, uncounted="does not fit into the board's memory")
    if builder.board.is_host:
        names = {e.c_name: e.name for e in program.entries}
        totals, printed = count_calls(elf, names)
        called = {names[k]: total / steps for k, total in totals.items()}
    else:
        counts = count(builder.board, elf, plugin(plugins))
        called = {p.entry: counts.instructions.get(p.id, 0) / steps for p in entry_probes(program)}
        printed = counts.printed
    return Cost(
        train=plain(sum(called[name] for name in TRAINING if name in called) or sum(called.values())),
        predict=plain(called.get("predict", 0)),
        arena=known.arena,
        text=text_bytes(elf.with_suffix(".map"), program.name)["together"],
        lines=lines,
        losses=tuple(float(line.split()[1]) for line in printed if line.startswith("loss ")),
    )


def reference(file: LoadedFile, steps: int = 2) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The losses of some steps with kernels of `ref` on the host, and the outputs after them."""
    if not isinstance(file.made, Model):
        return (), ()
    trainer = host_trainer(file.made, kernels="ref")
    given = data(trainer.program, file, steps)
    inputs = {e.name: [v.name or "" for v in e.plan.graph.inputs] for e in trainer.program.entries}
    losses = []
    arrays: dict[str, Any] = {}
    for step in range(steps):
        arrays = {key.partition(":")[0]: array for key, array in given[step % len(given)].items()}
        if "train_step" in inputs:
            losses.append(trainer.train_step(*(arrays[k] for k in inputs["train_step"] if k in arrays)))
    outputs = trainer.predict(*(arrays[k] for k in inputs["predict"]))
    found = list(outputs.values()) if isinstance(outputs, dict) else [outputs]
    return tuple(losses), tuple(float(v) for array in found for v in np.ravel(array))
