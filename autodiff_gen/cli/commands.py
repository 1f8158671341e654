"""What the commands do that need no module of their own; each imports what it needs, so that `boards` runs without
NumPy."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..targets.board import Board

FORMATS = ("platformio", "cmake", "make", "arduino", "plain")  # those of export


def run_build(args: argparse.Namespace) -> int:
    from ..model.build import build

    board, kernels = _board_and_kernels(args)
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


def run_export(args: argparse.Namespace) -> int:
    from ..model.project.export import export

    board, kernels = _board_and_kernels(args)
    done = export(args.model, board, args.out, args.name, kernels, args.ram, args.form)
    for path in done.kept:
        print(f"{args.out / path}: kept, as it was changed after the last export")
    next_step = next(iter(done.commands), "README.md says how to compile it")
    print(f"{args.out}: a project; {next_step}")
    return 0


def run_new_board(args: argparse.Namespace) -> int:
    from ..targets.new_board import new_board

    paths = new_board(args.board, args.like, args.out)
    print("\n".join(map(str, paths)))
    print(
        f"Change what the word CHANGE marks; then autodiff-gen export MODEL --board {paths[0]} --as make --out DIR"
    )
    return 0


def run_deps(args: argparse.Namespace) -> int:
    from ..model.loader import deps_json, load_file

    print(deps_json(load_file(args.model).files), end="")
    return 0


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


def run_explain(args: argparse.Namespace) -> int:
    from ..model.build import compile_file
    from ..model.loader import load_file
    from ..report.explain import explain

    board, kernels = _board_and_kernels(args)
    file = load_file(args.model)
    # A program that does not fit is explained too.
    program = compile_file(file.made, args.name or file.name, kernels, board, args.ram, must_fit=False)
    print(explain(program, board, args.ram, args.full))
    return 0


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

    board, kernels = _board_and_kernels(args)
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


def run_test_kernels(args: argparse.Namespace) -> int:
    from ..check.kernels import test_kernels
    from ..targets import board

    lines, good = test_kernels(args.backend, board.load(args.board), args.compiler)
    print("\n".join(lines))
    return 0 if good else 1


def run_fetch(args: argparse.Namespace) -> int:
    from ..kernels import registry

    external = registry.external(args.backend)
    print(f"{external.name}: {external.fetch(args.file)}")
    return 0


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


def run_models(args: argparse.Namespace) -> int:
    from ..targets import installation

    for path in sorted(installation.examples().glob("*/model.py")):
        print(path.parent.name)
    return 0


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


def _board_and_kernels(args: argparse.Namespace) -> tuple[Board, list[str] | None]:
    """The board, and the command line's kernel backends; None for those of the board's profile."""
    from ..kernels import registry
    from ..targets import board

    return board.load(args.board), None if args.kernels is None else registry.parse_list(args.kernels)


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from ..report.text_table import table

    print(table(head, rows))
