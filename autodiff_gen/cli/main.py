"""The command line: `autodiff-gen COMMAND ...`, which SCons and PlatformIO call too.

An error of the user is one line on stderr and exit code 1 (2 for the command line); a traceback is a bug.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ..errors import AutodiffError, ToolError
from ..targets.installation import __version__
from ..targets.schema import DEFAULT_BOARD, near
from . import commands, help_error
from .arguments import count, positive, ram
from .bench import add_bench_commands
from .device import add_commands
from .plan import add_plan_command


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    """Report errors as one line with the closest match, without argparse's usage text."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message}; see {self.prog} --help")

    def parse_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        known, unknown = self.parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].split("=")[0]
            flags = [f for f in _flags(self, known) if f.startswith("--")]
            what = (
                f"unknown option {word!r}{near(word, flags)}"
                if word.startswith("-")
                else f"unexpected argument {unknown[0]!r}"
            )
            raise _UsageError(what)
        return known


def _flags(parser: argparse.ArgumentParser, known: argparse.Namespace) -> list[str]:
    actions = list(parser._actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            actions += action.choices[known.command]._actions
    return list(dict.fromkeys(flag for action in actions for flag in action.option_strings))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    # Graphs are large, full of cycles and live long: looking for garbage took a third of the time, at the end a tenth.
    gc.set_threshold(5_000_000, 30, 30)
    atexit.register(gc.freeze)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # as stderr is: paths may not be in the terminal's encoding
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        parser = _parser()
        _check_command(parser, words)
        args = parser.parse_args(words)
        _check_output(args)
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except _UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except AutodiffError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:  # where no command says more: a path that is too long, a disk that is full
        what = ToolError(f"cannot read or write {error.filename or 'a file'}: {error.strerror or error}")
        print(f"error: {what}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130


def _check_command(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    (sub,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    if not words:
        raise _UsageError(f"no command given; choose from {', '.join(sub.choices)}; see {parser.prog} --help")
    if not words[0].startswith("-") and words[0] not in sub.choices:
        raise _UsageError(f"unknown command {words[0]!r}{near(words[0], sub.choices)}")


def _check_output(args: argparse.Namespace) -> None:
    """Raise where the file to write is one that the command reads, such as the model."""
    out = getattr(args, "out", None)
    if not isinstance(out, Path) or not out.is_file():
        return
    for name, path in vars(args).items():
        if name != "out" and isinstance(path, str | Path) and os.path.isfile(path) and out.samefile(path):
            raise _UsageError(f"--out {out} is a file that the command reads ({name}); choose another")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="autodiff-gen",
        description="Compile Python models to C that trains them on a microcontroller.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"autodiff_gen {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        return subparsers.add_parser(name, help=help, description=help, allow_abbrev=False)

    build = command("build", "Write NAME.h, NAME.c, NAME_params.c and NAME.deps.json.")
    _model_argument(build)
    _target_arguments(build)
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
    build.set_defaults(run=commands.run_build)

    export = command(
        "export",
        "Write a project that compiles as it is, for CMake, make, Arduino, PlatformIO or another build system.",
    )
    _model_argument(export)
    _target_arguments(export)
    export.add_argument(
        "--as",
        dest="form",
        choices=commands.FORMATS,
        default=commands.FORMATS[0],
        help="the build system; plain: sources alone (default: %(default)s)",
    )
    export.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        required=True,
        help="the project's folder; created if it does not exist",
    )
    export.set_defaults(run=commands.run_export)

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
    importer.set_defaults(run=commands.run_import)

    deps = command("deps", "Print the files that the model opens when it is read, as JSON.")
    _model_argument(deps)
    deps.set_defaults(run=commands.run_deps)

    check = command(
        "check",
        "Compare gradients with finite differences in float64, and with PyTorch if it is installed; "
        "an imported network (.pt2, .onnx) with the original.",
    )
    _model_argument(check)
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
    check.set_defaults(run=commands.run_check)

    explain = command(
        "explain",
        "Print the sizes, the arena's peak and its lower bound, the largest tensors and the chosen kernels.",
    )
    _model_argument(explain)
    _target_arguments(explain)
    explain.add_argument(
        "--full", action="store_true", help="print every step, the arena map and the graphs too"
    )
    explain.set_defaults(run=commands.run_explain)

    report = command("report", "Print what explain prints, and write it as one HTML page.")
    _model_argument(report)
    _target_arguments(report)
    report.add_argument("--out", metavar="FILE", type=Path, required=True, help="the page")
    report.add_argument("--elf", metavar="FILE", type=Path, help="the linked program, for its symbols")
    report.add_argument(
        "--bench", metavar="FILE", type=Path, help="a record of bench, for instructions and cycles"
    )
    report.set_defaults(run=commands.run_report)

    test = command(
        "test-kernels",
        "Compare the kernels of a folder with ref over the shape tables, on the host or in QEMU.",
    )
    test.add_argument(
        "backend", metavar="FOLDER", help="a folder with a kernels.toml, or a backend of the tree"
    )
    _board_argument(test)
    test.add_argument(
        "--compiler", metavar="NAME", default="gcc", help="of the board's toolchain (default: %(default)s)"
    )
    test.set_defaults(run=commands.run_test_kernels)

    fetch = command("fetch", "Fetch the pinned third-party sources that a kernel backend wraps.")
    fetch.add_argument("backend", metavar="BACKEND", help="cmsis: CMSIS-NN; cmsis_dsp: CMSIS-DSP")
    fetch.add_argument("--file", metavar="FILE", type=Path, help="the package, if it is already downloaded")
    fetch.set_defaults(run=commands.run_fetch)

    add_plan_command(command, _model_argument, _target_arguments)
    helper = command("help-error", "Explain an error message: what it means, an example, and the fix.")
    helper.add_argument(
        "text", metavar="TEXT", nargs="*", help="the message, or a part of it (default: standard input)"
    )
    helper.set_defaults(run=help_error.run)

    add_commands(command, _model_argument, _target_arguments)
    add_bench_commands(command, _model_argument, _target_arguments)

    new = command("new-board", "Write the file and the code of a new chip, copied from a similar board.")
    new.add_argument("board", metavar="NAME", help="the new board's name")
    new.add_argument(
        "--like", metavar="BOARD", default="stm32", help="the board to copy (default: %(default)s)"
    )
    new.add_argument("--out", metavar="DIR", type=Path, default=Path(), help="the folder (default: this one)")
    new.set_defaults(run=commands.run_new_board)

    boards = command("boards", "List the boards.")
    boards.add_argument(
        "--schema",
        action="store_true",
        help="print the JSON Schema of board files, for editors, in place of the list",
    )
    boards.set_defaults(run=commands.run_boards)
    command("models", "List the examples.").set_defaults(run=commands.run_models)
    ops = command(
        "ops", "List the operations: how each is lowered to C, whether it has a gradient, and PyTorch's name."
    )
    ops.add_argument(
        "--markdown",
        action="store_true",
        help="print docs/operations.md, with all functions, layers, optimizers and schedules",
    )
    ops.set_defaults(run=commands.run_ops)
    return parser


def _model_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="a model file, an example's name, or a .pt2 or .onnx file"
    )


def _board_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--board",
        metavar="BOARD",
        default=DEFAULT_BOARD,
        help="a board's name, such as host, or a .toml file (default: %(default)s)",
    )


def _target_arguments(parser: argparse.ArgumentParser) -> None:
    _board_argument(parser)
    parser.add_argument("--name", help="name of the generated files and functions (default: the model's)")
    parser.add_argument(
        "--kernels", metavar="LIST", help="kernel backends by priority, with commas (default: the board's)"
    )
    parser.add_argument(
        "--ram",
        metavar="BYTES",
        type=ram,
        help="RAM budget of the trainer, such as 98304 or 96K, or that of each region of memory that it may use: "
        "sram=96K,ccm=64K (default: the board's RAM less the stack)",
    )
