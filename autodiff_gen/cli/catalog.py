"""The commands about the installation: boards, kernels of other projects, example models and ops."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from .arguments import Command


def add_commands(command: Command) -> None:
    for add in (_add_fetch, _add_new_board, _add_boards, _add_models, _add_ops):
        add(command)


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
        f"Edit the lines that are marked CHANGE; then autodiff-gen export MODEL --board {paths[0]} --as make --out DIR"
    )
    return 0


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
        help="for editors: print the JSON Schema of board files instead of the list",
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


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from ..report.text_table import table

    print(table(head, rows))
