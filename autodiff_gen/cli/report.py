"""The commands that report the sizes, steps and kernels of a compiled model, and the losses of runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from .arguments import Command, board_and_kernels, force_argument, model_argument, target_arguments


def add_commands(command: Command) -> None:
    for add in (_add_explain, _add_report, _add_log):
        add(command)


def _add_explain(command: Command) -> None:
    explain = command(
        "explain",
        "Print the sizes, the arena's peak and its lower bound, the largest tensors and the chosen kernels.",
    )
    model_argument(explain)
    target_arguments(explain)
    explain.add_argument(
        "--full", action="store_true", help="print every step, the arena map and the graphs too"
    )
    explain.set_defaults(run=run_explain)


def run_explain(args: argparse.Namespace) -> int:
    from ..model.build import compile_file
    from ..model.loader import load_file
    from ..progress import doing
    from ..report.explain import explain

    board, kernels = board_and_kernels(args)
    file = load_file(args.model)
    # A program that does not fit is explained too.
    program = compile_file(file.made, args.name or file.name, kernels, board, args.ram, must_fit=False)
    with doing(f"explaining {program.name}"):
        text = explain(program, board, args.ram, args.full)
    print(text)
    return 0


def _add_report(command: Command) -> None:
    report = command("report", "Print the output of explain, and write it as one HTML page.")
    model_argument(report)
    target_arguments(report)
    report.add_argument("--out", metavar="FILE", type=Path, required=True, help="the page")
    report.add_argument("--elf", metavar="FILE", type=Path, help="the linked program, for its symbols")
    report.add_argument(
        "--bench", metavar="FILE", type=Path, help="a record of bench: its instructions and cycles"
    )
    report.add_argument(
        "--fleet",
        metavar="DIR",
        type=Path,
        help="a run of fleet, such as build/fleet/NAME, for its curves and its timeline",
    )
    force_argument(report)
    report.set_defaults(run=run_report)


def run_report(args: argparse.Namespace) -> int:
    """Print what `explain` prints, and write the page."""
    from ..errors import ToolError
    from ..model.build import compile_file
    from ..model.loader import load_file
    from ..owned_files import write_file
    from ..reading.json_text import parse
    from ..reading.limits import TEXT
    from ..reading.regular import read_bytes
    from ..report.collect import collect
    from ..report.explain import text
    from ..report.fleet_pictures import read_fleet
    from ..report.listing import listings
    from ..report.page import Measured, other_program, page
    from ..report.symbols import memories

    board, kernels = board_and_kernels(args)
    file = load_file(args.model)
    program = compile_file(file.made, args.name or file.name, kernels, board, args.ram, must_fit=False)
    report = collect(program, board, args.ram)
    notes, bench = [], {}
    if args.bench is not None:
        try:
            bench = parse(read_bytes(args.bench, ToolError, TEXT), str(args.bench), ToolError)
            other = other_program(report, bench)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ToolError(f"{args.bench}: is no record of bench; run bench again") from None
        if other:
            notes, bench = [f"{args.bench} is left out: {other}; run bench again"], {}
    rounds = read_fleet(args.fleet) if args.fleet is not None else ()
    measured = Measured(memories(board, args.elf) if args.elf is not None else (), bench, rounds)
    write_file(args.out, page(report, listings(program), measured), args.force)
    notes.append(f"{args.out}: the same as a page, with the arena over the steps and the generated C")
    print("\n\n".join([text(report), *notes]))
    return 0


def _add_log(command: Command) -> None:
    log = command(
        "log", "Compare runs by the logs that train and fleet write: a table, and a picture as SVG."
    )
    log.add_argument("logs", metavar="LOG.csv", type=Path, nargs="+", help="a file that --log wrote")
    log.add_argument(
        "--out", metavar="FILE.svg", type=Path, help="write the losses and accuracies as a picture"
    )
    log.add_argument(
        "--by",
        choices=("step", "epoch", "seconds"),
        default="step",
        help="the unit of the picture's x-axis (default: %(default)s)",
    )
    force_argument(log)
    log.set_defaults(run=run_log)


def run_log(args: argparse.Namespace) -> int:
    """Print a row for each run, and write the picture."""
    from ..device.log_runs import compared, picture, read_runs
    from ..owned_files import write_file

    runs = read_runs(args.logs)
    if args.out is not None:
        write_file(args.out, picture(runs, args.by), args.force)
    print(compared(runs))
    return 0
