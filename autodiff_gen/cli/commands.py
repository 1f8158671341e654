"""Commands that need no module of their own: their options and what they do. Each imports what it needs, so that
`boards` runs without NumPy."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .arguments import (
    Command,
    board_and_kernels,
    board_argument,
    count,
    model_argument,
    positive,
    target_arguments,
)

FORMATS = ("platformio", "cmake", "make", "arduino", "plain")  # those of export


def _add_build(command: Command) -> None:
    build = command("build", "Write NAME.h, NAME.c, NAME_params.c and NAME.deps.json.")
    model_argument(build)
    target_arguments(build)
    build.add_argument("--out", metavar="DIR", type=Path, required=True, help="the output folder")
    build.add_argument(
        "--dump", metavar="DIR", type=Path, help="write the graph after each pass to this folder"
    )
    build.add_argument(
        "--poison",
        action="store_true",
        help="for debugging: fill memory of the arena that holds no value with NaN",
    )
    build.add_argument("--quiet", action="store_true", help="print nothing, as build systems want it")
    build.set_defaults(run=run_build)


def run_build(args: argparse.Namespace) -> int:
    from ..model.build import build

    board, kernels = board_and_kernels(args)
    made = build(
        args.model, board, args.out, args.name, kernels, args.ram, args.dump, args.poison, note=print
    )
    if not args.quiet:
        print("\n".join(str(path) for path in made))
        print(
            f"They include headers of the runtime and call kernels; `autodiff-gen export {args.model} --board "
            f"{args.board} --as FORMAT --out DIR` writes all of it with a build file (FORMAT: {', '.join(FORMATS)})"
        )
    return 0


def _add_export(command: Command) -> None:
    export = command(
        "export",
        "Write a project that compiles as it is, for CMake, make, Arduino, PlatformIO or another build system.",
    )
    model_argument(export)
    target_arguments(export)
    export.add_argument(
        "--as",
        dest="form",
        choices=FORMATS,
        default=FORMATS[0],
        help="the build system; plain: sources alone (default: %(default)s)",
    )
    export.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        required=True,
        help="the project's folder; created if it does not exist",
    )
    export.set_defaults(run=run_export)


def run_export(args: argparse.Namespace) -> int:
    from ..model.project.export import export

    board, kernels = board_and_kernels(args)
    done = export(args.model, board, args.out, args.name, kernels, args.ram, args.form)
    for path in done.kept:
        print(f"{args.out / path}: kept, as it was changed after the last export")
    next_step = next(iter(done.commands), "README.md says how to compile it")
    print(f"{args.out}: a project; {next_step}")
    return 0


def _add_new_board(command: Command) -> None:
    new = command("new-board", "Write the file and the code of a new chip, copied from a similar board.")
    new.add_argument("board", metavar="NAME", help="the new board's name")
    new.add_argument(
        "--like", metavar="BOARD", default="stm32", help="the board to copy (default: %(default)s)"
    )
    new.add_argument("--out", metavar="DIR", type=Path, default=Path(), help="the folder (default: this one)")
    new.set_defaults(run=run_new_board)


def run_new_board(args: argparse.Namespace) -> int:
    from ..targets.new_board import new_board

    paths = new_board(args.board, args.like, args.out)
    print("\n".join(map(str, paths)))
    print(
        f"Change what the word CHANGE marks; then autodiff-gen export MODEL --board {paths[0]} --as make --out DIR"
    )
    return 0


def _add_deps(command: Command) -> None:
    deps = command("deps", "Print the files that the model opens when it is read, as JSON.")
    model_argument(deps)
    deps.set_defaults(run=run_deps)


def run_deps(args: argparse.Namespace) -> int:
    from ..model.loader import deps_json, load_file

    print(deps_json(load_file(args.model).files), end="")
    return 0


def _add_import(command: Command) -> None:
    importer = command(
        "import", "Write a network of PyTorch (.pt2) or ONNX as a folder with model.py and weights.npz."
    )
    importer.add_argument(
        "network", metavar="NETWORK", type=Path, help="a file of torch.export.save, or an .onnx file"
    )
    importer.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder")
    importer.add_argument(
        "--weights-only", action="store_true", help="keep model.py of the folder, and renew its weights"
    )
    importer.set_defaults(run=run_import)


def run_import(args: argparse.Namespace) -> int:
    from ..frontends.files import program_of
    from ..frontends.imported.folder import write_folder
    from ..frontends.imported.modes import evaluation_note
    from ..frontends.imported.network import network

    program = program_of(args.network)
    network(program, args.network.name)  # raises the error of a call that cannot be made
    for path in write_folder(program, args.network.name, args.out, args.weights_only):
        print(path)
    note = evaluation_note(program)
    if note is not None:
        print(f"warning: {args.network.name}: {note}", file=sys.stderr)
    return 0


def _add_check(command: Command) -> None:
    check = command(
        "check",
        "Compare gradients with finite differences in float64, and with PyTorch if it is installed; "
        "an imported network (.pt2, .onnx) with the original.",
    )
    model_argument(check)
    check.add_argument(
        "--samples",
        metavar="N",
        type=positive,
        default=200,
        help="elements per parameter (default: %(default)s)",
    )
    check.add_argument(
        "--seed", metavar="N", type=count, default=0, help="seed of the data and of the choice of elements"
    )
    check.add_argument(
        "--steps",
        metavar="N",
        type=count,
        help="check after N training steps in float64; 0 for the initial values "
        "(default: the initial values with a small perturbation)",
    )
    check.set_defaults(run=run_check)


def run_check(args: argparse.Namespace) -> int:
    from ..check.gradcheck import check
    from ..frontends.files import is_network, program_of
    from ..model.loader import load_file

    path = Path(args.model)
    if is_network(path):
        from ..check import onnx_original, original

        program = program_of(path)
        if path.suffix == ".onnx":
            report, good = onnx_original.compare(program, path, path.name, args.seed)
        else:
            report, good = original.compare(program, path, path.name, args.seed)
        print(report)
        return 0 if good else 1
    before = len(_originals())
    file = load_file(args.model)
    report, good = check(file.made, file.name, args.samples, args.seed, file.samples, args.steps)
    print(report)
    for of in _originals()[before:]:
        from ..check import original

        of.file.seek(0)
        report, same = original.compare(of.program, of.file, of.name, args.seed)
        print(report)
        good = good and same
    return 0 if good else 1


def _originals() -> Sequence[Any]:
    """The networks that from_torch has imported, whose module is loaded only by model files that call it."""
    module = sys.modules.get("autodiff_gen.frontends.pytorch.export")
    return () if module is None else module.originals


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
    from ..report.explain import explain

    board, kernels = board_and_kernels(args)
    file = load_file(args.model)
    # A program that does not fit is explained too.
    program = compile_file(file.made, args.name or file.name, kernels, board, args.ram, must_fit=False)
    print(explain(program, board, args.ram, args.full))
    return 0


def _add_report(command: Command) -> None:
    report = command("report", "Print what explain prints, and write it as one HTML page.")
    model_argument(report)
    target_arguments(report)
    report.add_argument("--out", metavar="FILE", type=Path, required=True, help="the page")
    report.add_argument("--elf", metavar="FILE", type=Path, help="the linked program, for its symbols")
    report.add_argument(
        "--bench", metavar="FILE", type=Path, help="a record of bench, for instructions and cycles"
    )
    report.set_defaults(run=run_report)


def run_report(args: argparse.Namespace) -> int:
    """Print what `explain` prints, and write the page."""
    from ..errors import ToolError
    from ..model.build import compile_file, write_all
    from ..model.loader import load_file
    from ..report.collect import collect
    from ..report.explain import text
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
            bench = json.loads(args.bench.read_text(encoding="utf-8"))
            other = other_program(report, bench)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ToolError(f"{args.bench}: is no record of bench; run bench again") from None
        if other:
            notes, bench = [f"{args.bench} is left out: {other}; run bench again"], {}
    measured = Measured(memories(board, args.elf) if args.elf is not None else (), bench)
    write_all(args.out.parent, {args.out.name: page(report, listings(program), measured)})
    notes.append(f"{args.out}: the same as a page, with the arena over the steps and the generated C")
    print("\n\n".join([text(report), *notes]))
    return 0


def _add_test_kernels(command: Command) -> None:
    test = command(
        "test-kernels",
        "Compare the kernels of a folder with ref over the shape tables, on the host or in QEMU.",
    )
    test.add_argument(
        "backend", metavar="FOLDER", help="a folder with a kernels.toml, or a backend of the tree"
    )
    board_argument(test)
    test.add_argument(
        "--compiler", metavar="NAME", default="gcc", help="of the board's toolchain (default: %(default)s)"
    )
    test.set_defaults(run=run_test_kernels)


def run_test_kernels(args: argparse.Namespace) -> int:
    from ..check.kernels import test_kernels
    from ..targets import board

    lines, good = test_kernels(args.backend, board.load(args.board), args.compiler)
    print("\n".join(lines))
    return 0 if good else 1


def _add_fetch(command: Command) -> None:
    fetch = command("fetch", "Fetch the pinned third-party sources that a kernel backend wraps.")
    fetch.add_argument("backend", metavar="BACKEND", help="cmsis: CMSIS-NN; cmsis_dsp: CMSIS-DSP")
    fetch.add_argument("--file", metavar="FILE", type=Path, help="the package, if it is already downloaded")
    fetch.set_defaults(run=run_fetch)


def run_fetch(args: argparse.Namespace) -> int:
    from ..kernels import registry

    external = registry.external(args.backend)
    print(f"{external.name}: {external.fetch(args.file)}")
    return 0


def _add_boards(command: Command) -> None:
    boards = command("boards", "List the boards.")
    boards.add_argument(
        "--schema",
        action="store_true",
        help="print the JSON Schema of board files, for editors, in place of the list",
    )
    boards.set_defaults(run=run_boards)


def run_boards(args: argparse.Namespace) -> int:
    from ..targets import board, schema

    if args.schema:
        print(json.dumps(schema.json_schema(), indent=1))
        return 0
    rows = []
    for name in board.names():
        b = board.load(name)
        sizes = [f"{r.bytes // 1024} KB {r.name}" for r in b.memory.values()]
        rows.append(
            (name, b.name, b.target.core, ", ".join(sizes) or "no limit", b.qemu.machine if b.qemu else "-")
        )
    _print_table(("board", "name", "core", "memory", "QEMU machine"), rows)
    return 0


def _add_models(command: Command) -> None:
    command("models", "List the examples.").set_defaults(run=run_models)


def run_models(args: argparse.Namespace) -> int:
    from ..targets import installation

    for path in sorted(installation.examples().glob("*/model.py")):
        print(path.parent.name)
    return 0


def _add_ops(command: Command) -> None:
    ops = command(
        "ops", "List the operations: how each is lowered to C, whether it has a gradient, and PyTorch's name."
    )
    ops.add_argument(
        "--markdown",
        action="store_true",
        help="print docs/operations.md, with all functions, layers, optimizers and schedules",
    )
    ops.set_defaults(run=run_ops)


def run_ops(args: argparse.Namespace) -> int:
    from .. import ops as _records  # noqa: F401  (fills the registry)
    from ..ir.node import OPS
    from ..ir.op_kinds import Leaf

    if args.markdown:
        from .list_ops import markdown

        print(markdown(), end="")
        return 0
    rows = []
    for name in sorted(OPS):
        op = OPS[name]
        if not isinstance(op.lower, Leaf):
            gradient = "gradient" if op.vjp else "no gradient"
            rows.append((name, type(op.lower).__name__.lower(), gradient, op.torch or "-"))
    _print_table(("op", "lowering", "gradient", "in PyTorch"), rows)
    return 0


def add_model_commands(command: Command) -> None:
    """Add the commands that read a model, and those for kernels."""
    for add in (
        _add_build,
        _add_export,
        _add_import,
        _add_deps,
        _add_check,
        _add_explain,
        _add_report,
        _add_test_kernels,
        _add_fetch,
    ):
        add(command)


def add_board_commands(command: Command) -> None:
    """Add those that list what there is, and new-board."""
    for add in (_add_new_board, _add_boards, _add_models, _add_ops):
        add(command)


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from ..report.text_table import table

    print(table(head, rows))
