"""`plan`: which layers and channels to train within a RAM budget."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from .arguments import (
    Command,
    board_and_kernels,
    data_arguments,
    force_argument,
    model_argument,
    number_argument,
    target_arguments,
)

if TYPE_CHECKING:
    from ..model.file_plan import FilePlan
    from ..model.loader import LoadedFile
    from ..model.model import Model
    from ..model.update_plan import Proposal


def add_commands(command: Command) -> None:
    """Add `plan`."""
    plan = command(
        "plan",
        "Propose which layers and channels to train within a RAM budget: those whose gradients are largest for the "
        "memory that they need.",
    )
    model_argument(plan)
    target_arguments(plan)
    data_arguments(plan, "the model file's batch or samples, otherwise random numbers", "calibration data: ")
    number_argument(plan, "--batches", "batches of the calibration data (default: %(default)s)", default=8)
    plan.add_argument(
        "--out", metavar="FILE", type=Path, help="write the lines for the model file to this file"
    )
    force_argument(plan)
    plan.set_defaults(run=run_plan)


def run_plan(args: argparse.Namespace) -> int:
    from ..codegen.budget_notes import budget_notes, work_notes
    from ..model.file_plan import FilePlan
    from ..model.trainable_params_source import trainable_params_source
    from ..owned_files import write_file

    board, kernels = board_and_kernels(args)
    plan = FilePlan(args.model, board, kernels, args.ram, args.name)
    batches, source = _batches(args, plan.model, plan.file)
    proposal, chosen = plan.propose(islice(batches, args.batches))
    print(_text(proposal, plan, source))
    clock_hz = board.target.clock_hz
    for line in work_notes(proposal.program, clock_hz):
        print(line)
    for line in budget_notes(proposal.program, lambda: plan.without_budget(chosen), clock_hz):
        print(line)
    lines = trainable_params_source(proposal.rows, plan.file.names)
    print("\n".join(["", "Lines for the model file, after the network and before the model:", "", *lines]))
    if args.out is not None:
        size = proposal.program.struct_bytes
        head = f"# What trains of {plan.file.name} in {plan.budget} bytes: {size} with state and arena."
        write_file(args.out, "\n".join([head, *lines, ""]), args.force)
    return 0


def _batches(
    args: argparse.Namespace, model: Model, file: LoadedFile
) -> tuple[Iterator[Mapping[str, Any]], str]:
    """Arrays by the names of inputs and targets, batch by batch, and a description of the data."""
    from ..model.contributions import synthetic

    named = [str(v.name) for v in (*model.inputs, *model.targets)]
    if args.data is not None:
        return _of_data(args, model)
    if given := next(
        (word for word in ("columns", "window", "stride", "classes") if getattr(args, word)), None
    ):
        raise DataError(f"--{given} describes data: name the data with --data")
    if file.batch is not None:
        batch = file.batch
        return (
            dict(zip(named, batch(k), strict=True)) for k in range(args.batches)
        ), "the model file's batch"
    if all(name in file.samples for name in named):
        return iter([{name: file.samples[name] for name in named}]), "the model file's samples"
    return synthetic(model), "random numbers: give data of the task with --data"


def _of_data(args: argparse.Namespace, model: Model) -> tuple[Iterator[Mapping[str, Any]], str]:
    import numpy as np

    from ..codegen.board_link_layout import LinkArray, LinkLayout, rows_per_step
    from ..codegen.compiler import input_args
    from ..device.dataset import load_dataset
    from ..device.recording_windows import RecordingWindows
    from ..ir.index_checks import checks_of
    from ..model.loader import find_model

    targets, arrays = set(model.targets), []
    for arg in input_args((*model.inputs, *model.targets), checks_of([model.loss])):
        arrays.append(LinkArray(arg, arg.c_name, 0, arg.value in targets, model.batch))
    path, layout = find_model(args.model)[0], LinkLayout(tuple(arrays), ())
    windows = RecordingWindows(args.window, args.stride)
    data = load_dataset(args.data, path, layout, args.columns, (), windows, args.classes)
    rows = rows_per_step(tuple(arrays))
    mixed = data.is_sorted(layout)
    order = np.random.default_rng(0).permutation(len(data)) if mixed else np.arange(len(data))
    parts = [order[k : k + rows] for k in range(0, max(len(data) - rows + 1, 1), rows)]
    batches = ({name: array[part] for name, array in data.train.items()} for part in parts)
    notes = [
        args.data,
        *([data.note] if data.note else []),
        *(["mixed, as they are sorted by class"] if mixed else []),
    ]
    return batches, "; ".join(notes)


def _text(proposal: Proposal, plan: FilePlan, source: str) -> str:
    from ..ir.types import planned_size
    from ..report.text_table import table

    head = ("parameter", "elements", "contribution", "trains", "bytes")
    rows = []
    for row in proposal.rows:
        trains = "-" if not row.fraction else "all" if row.fraction == 1 else f"{row.fraction:g} of channels"
        size = f"{row.bytes}" if row.fraction else "-"
        elements = planned_size(row.state.logical.shape)
        rows.append((row.state.name, str(elements), f"{row.share:.2%}", trains, size))
    program = proposal.program
    budget, free = plan.budget, plan.budget - program.struct_bytes
    return "\n".join(
        [
            table(head, rows, right=(1, 2, 4)),
            "",
            f"{plan.what}, kernels {', '.join(program.backends.names)}, batch {program.samples}",
            "contribution: its part of the squares of all gradients; bytes: of its state, and of values stored for it, "
            "by an estimate",
            f"gradients: of {source}",
            f"total: {program.struct_bytes} bytes as planned: {program.state_bytes} of state, "
            f"{program.struct_bytes - program.state_bytes} of arena; budget {budget}, {free} free; "
            f"choices compiled: {proposal.tried}",
        ]
    )
