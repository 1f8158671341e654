"""The commands that write C, a project or a model file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .arguments import Command, board_and_kernels, force_argument, model_argument, target_arguments

FORMATS = ("platformio", "cmake", "make", "arduino", "plain")  # of projects


def add_commands(command: Command) -> None:
    for add in (_add_build, _add_export, _add_import, _add_deps):
        add(command)


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
    force_argument(build)
    build.set_defaults(run=run_build)


def run_build(args: argparse.Namespace) -> int:
    from ..model.build import build

    board, kernels = board_and_kernels(args)
    made = build(
        args.model, board, args.out, args.name, kernels, args.ram, args.dump, args.poison, print, args.force
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
    export.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help="a model file, an example's name, or a .pt2 or .onnx file; several models share kernels and runtime",
    )
    target_arguments(export)
    export.add_argument(
        "--as",
        dest="form",
        choices=FORMATS,
        default=FORMATS[0],
        help="the build system; plain: only the sources (default: %(default)s)",
    )
    export.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        required=True,
        help="the project's folder; created if it does not exist",
    )
    force_argument(export)
    export.set_defaults(run=run_export)


def run_export(args: argparse.Namespace) -> int:
    from ..model.project.export import export

    board, kernels = board_and_kernels(args)
    names = None if args.name is None else args.name.split(",")
    done = export(args.models, board, args.out, names, kernels, args.ram, args.form, args.force)
    for note in done.notes:
        print(f"note: {note}")
    for path in done.kept:
        print(f"{args.out / path}: kept, as it was changed after the last export")
    next_step = next(iter(done.commands), "README.md says how to compile it")
    print(f"{args.out}: a project; {next_step}")
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
    force_argument(importer)
    importer.set_defaults(run=run_import)


def run_import(args: argparse.Namespace) -> int:
    from ..frontends.files import program_of
    from ..frontends.imported.folder import write_folder
    from ..frontends.imported.modes import evaluation_note
    from ..frontends.imported.network import network

    program = program_of(args.network)
    network(program, args.network.name)  # raises the error of a call that cannot be made
    for path in write_folder(program, args.network.name, args.out, args.weights_only, args.force):
        print(path)
    note = evaluation_note(program)
    if note is not None:
        print(f"warning: {args.network.name}: {note}", file=sys.stderr)
    return 0
