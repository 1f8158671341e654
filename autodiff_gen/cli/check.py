"""The commands that compare with a reference: gradients, imported networks, and kernels."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .arguments import Command, board_argument, count, model_argument, number_argument


def add_commands(command: Command) -> None:
    for add in (_add_check, _add_test_kernels):
        add(command)


def _add_check(command: Command) -> None:
    check = command(
        "check",
        "Compare gradients with finite differences in float64, and with PyTorch if it is installed; "
        "an imported network (.pt2, .onnx) with the original.",
    )
    model_argument(check)
    number_argument(check, "--samples", "elements per parameter (default: %(default)s)", default=200)
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
        from ..check import compare_onnx, compare_torch

        program = program_of(path)
        if path.suffix == ".onnx":
            report, good = compare_onnx.compare(program, path, path.name, args.seed)
        else:
            report, good = compare_torch.compare(
                program, path, path.name, args.seed, steps=args.steps or compare_torch.STEPS
            )
        print(report)
        return 0 if good else 1
    before = len(_originals())
    file = load_file(args.model)
    report, good = check(file.made, file.name, args.samples, args.seed, file.samples, args.steps)
    print(report)
    for of in _originals()[before:]:
        from ..check import compare_torch

        report, same = compare_torch.compare(
            of.program, of.module, of.name, args.seed, steps=args.steps or compare_torch.STEPS
        )
        print(report)
        good = good and same
    return 0 if good else 1


def _originals() -> Sequence[Any]:
    """The networks that from_torch has imported; its module is loaded only if a model file calls from_torch."""
    module = sys.modules.get("autodiff_gen.frontends.pytorch.export")
    return () if module is None else module.originals


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

    lines, good = test_kernels(args.backend, board.load(args.board, trusted=args.trust_board), args.compiler)
    print("\n".join(lines))
    return 0 if good else 1
