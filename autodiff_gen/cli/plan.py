"""`plan`: which layers and channels to train within a RAM budget."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import Command, model_argument, positive, target_arguments

if TYPE_CHECKING:
    from ..codegen.program import Program
    from ..ir.graph import Channels, State
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
    plan.add_argument(
        "--data",
        metavar="FILE",
        help="calibration data: .npz, samples.bin, or .py with dataset() (default: the model file's batch or samples, "
        "otherwise random numbers)",
    )
    plan.add_argument(
        "--batches",
        metavar="N",
        type=positive,
        default=8,
        help="of the calibration data (default: %(default)s)",
    )
    plan.add_argument(
        "--out", metavar="FILE", type=Path, help="write the lines for the model file to this file"
    )
    plan.set_defaults(run=run_plan)


def run_plan(args: argparse.Namespace) -> int:
    from ..codegen.compiler import budget_notes
    from ..model.contributions import squares
    from ..model.update_costs import costs
    from ..model.update_plan import propose

    compiler = _Compiler(args)
    model, file, states = compiler.trained()
    batches, source = _batches(args, model, file)
    found = squares(model, states, islice(batches, args.batches))
    of_states = costs(model, states, compiler.backends)
    proposal = propose(states, found, of_states, compiler.budget, compiler.compiled)
    print(_text(proposal, compiler.budget, source))
    graphs = compiler.model_of(proposal.program).entries()
    for line in budget_notes(proposal.program, graphs, compiler.board.target.clock_hz):
        print(line)
    _write_lines(args, proposal, compiler.budget, file)
    return 0


class _Compiler:
    """Compiles the model of a file for the board, with any choice of what trains."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Raises ModelError for a board without a budget."""
        from ..codegen.program_regions import budget_of, spaces_of
        from ..errors import ModelError
        from ..kernels import registry
        from ..targets import board as boards

        self.args, self.board = args, boards.load(args.board)
        self.kernels = None if args.kernels is None else registry.parse_list(args.kernels)
        self.spaces = spaces_of(self.board, args.ram)
        budget = budget_of(self.board, args.ram)
        if budget is None:
            raise ModelError(
                f"plan: board {self.board.id} has no limit of RAM; give a budget, such as --ram 128K"
            )
        self.budget = budget
        self.backends = registry.for_board(self.board, self.kernels)
        self._models: list[tuple[Program, Model]] = []

    def trained(self) -> tuple[Model, LoadedFile, list[State]]:
        """The model as its file has it, the file, and the parameters of which some may train. Raises ModelError."""
        from ..errors import ModelError

        model, file, reached = self._loaded(None)
        states = [state for state in model.trained if state.name in reached]
        if not states:
            raise ModelError(
                f"{self.args.model}: no parameter of a network trains; plan chooses between layers of ag.nn"
            )
        return model, file, states

    def compiled(self, channels: Mapping[State, Channels | None]) -> tuple[Program, int]:
        """The program in which these channels train, None for all, and the bytes that it leaves free; below 0, those
        that are missing."""
        from ..codegen.compiler import compile_model
        from ..codegen.program_regions import over

        model, file, _ = self._loaded({state.name: chosen for state, chosen in channels.items()})
        args, name = self.args, self.args.name or file.name
        program = compile_model(
            model, name, self.kernels, self.board, args.ram, must_fit=False, thorough=False
        )
        self._models.append((program, model))
        missing = sum(needed - space.bytes for space, needed in over(program, self.spaces))
        return program, -missing or self.budget - program.struct_bytes

    def model_of(self, program: Program) -> Model:
        """The model that a program was compiled of."""
        (model,) = (model for known, model in self._models if known is program)
        return model

    def _loaded(self, channels: Mapping[str, Channels | None] | None) -> tuple[Model, LoadedFile, set[str]]:
        from ..errors import ModelError
        from ..model.loader import load_file
        from ..model.model import Model
        from ..nn.selection import training_only

        with training_only(channels) as selection:
            file = load_file(self.args.model)
        if not isinstance(file.made, Model):
            raise ModelError(f"{self.args.model} defines functions; plan needs a model that trains")
        return file.made, file, selection.reached


def _write_lines(args: argparse.Namespace, proposal: Proposal, budget: int, file: LoadedFile) -> None:
    """Print the lines for the model file, and write them to the file that --out names."""
    from ..model.build import write_all
    from ..model.update_lines import update_lines

    lines = update_lines(proposal.rows, file.names)
    print("\n".join(["", "Lines for the model file, after the network and before the model:", "", *lines]))
    if args.out is not None:
        head = f"# What trains of {file.name} in {budget} bytes: {proposal.program.struct_bytes} with state and arena."
        write_all(args.out.parent, {args.out.name: "\n".join([head, *lines, ""])})


def _batches(
    args: argparse.Namespace, model: Model, file: LoadedFile
) -> tuple[Iterator[Mapping[str, Any]], str]:
    """Arrays by the names of inputs and targets, batch by batch, and what they are."""
    from ..model.contributions import synthetic

    named = [str(v.name) for v in (*model.inputs, *model.targets)]
    if args.data is not None:
        return _of_data(args, model), str(args.data)
    if file.batch is not None:
        batch = file.batch
        return (
            dict(zip(named, batch(k), strict=True)) for k in range(args.batches)
        ), "the model file's batch"
    if all(name in file.samples for name in named):
        return iter([{name: file.samples[name] for name in named}]), "the model file's samples"
    return synthetic(model), "random numbers: give data of the task with --data"


def _of_data(args: argparse.Namespace, model: Model) -> Iterator[Mapping[str, Any]]:
    from ..codegen.link_layout import LinkArray, LinkLayout
    from ..codegen.program import Arg
    from ..device.dataset import load_dataset, rows_per_step
    from ..model.loader import find_model

    targets, arrays = set(model.targets), []
    for v in (*model.inputs, *model.targets):
        attrs = v.node.attrs
        arg = Arg(str(v.name), str(v.name), v.type, "input", attrs.get("classes"), attrs.get("ignored"), v)
        arrays.append(LinkArray(arg, arg.c_name, 0, v in targets, model.batch))
    data = load_dataset(args.data, find_model(args.model)[0], LinkLayout(tuple(arrays), ()))
    rows = rows_per_step(tuple(arrays))
    for start in range(0, max(len(data) - rows + 1, 1), rows):
        yield {name: array[start : start + rows] for name, array in data.train.items()}


def _text(proposal: Proposal, budget: int, source: str) -> str:
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
    free = budget - program.struct_bytes
    return "\n".join(
        [
            table(head, rows, right=(1, 2, 4)),
            "",
            "contribution: its part of the squares of all gradients; bytes: of its state, and of what is kept for it, "
            "by an estimate",
            f"gradients: of {source}",
            f"total: {program.struct_bytes} bytes as planned: {program.state_bytes} of state, "
            f"{program.struct_bytes - program.state_bytes} of arena; budget {budget}, {free} free; "
            f"choices compiled: {proposal.tried}",
        ]
    )
