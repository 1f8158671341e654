"""Commands that use the board link: link, train, pull, push, hil."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import counted
from .arguments import (
    Command,
    batch_argument,
    baud_argument,
    count,
    data_arguments,
    force_argument,
    log_arguments,
    lr_argument,
    model_argument,
    number_argument,
    samples_argument,
    target_arguments,
    timeout_argument,
)

if TYPE_CHECKING:
    from ..device.board import Board
    from ..device.session import Session


def add_commands(command: Command) -> None:
    """Add the commands."""
    for add in (_add_link, _add_train, _add_pull, _add_push, _add_predict, _add_hil):
        add(command)


def _add_link(command: Command) -> None:
    link = command("link", "Write NAME_link.c: the model's interface for the firmware of the board link.")
    model_argument(link)
    target_arguments(link)
    link.add_argument("--out", metavar="DIR", type=Path, required=True, help="the output folder")
    force_argument(link)
    link.set_defaults(run=_link)


def _add_train(command: Command) -> None:
    train = command("train", "Train on a board: stream a data set to it, and log losses and accuracy.")
    model_argument(train)
    target_arguments(train)
    _port_arguments(train)
    data_arguments(train)
    passes = train.add_mutually_exclusive_group()
    number_argument(
        passes,
        "--epochs",
        "passes over the data in total, including passes that the board has trained (default: %(default)s)",
        default=1,
    )
    number_argument(
        passes,
        "--more",
        "passes over the data from the board's state on, whatever it has trained before: other data too",
    )
    batch_argument(train)
    samples_argument(train)
    train.add_argument(
        "--tests", metavar="N", type=count, help="use the first N test samples only; 0: do not test"
    )
    train.add_argument(
        "--send",
        choices=("s8", "s16"),
        help="round float inputs to integers of 8 or 16 bits times a scale, so that they take less of the line",
    )
    lr_argument(train)
    order = train.add_mutually_exclusive_group()
    order.add_argument(
        "--shuffle",
        metavar="SEED",
        type=count,
        help="permute the samples in every epoch (default: the data's own order; 0 if they are sorted by class)",
    )
    order.add_argument(
        "--no-shuffle",
        action="store_true",
        help="keep the data's own order, also if they are sorted by class",
    )
    start = train.add_mutually_exclusive_group()
    start.add_argument(
        "--fresh",
        action="store_true",
        help="start with the initial weights at step 0, not from the board's state; a flash.bin of another size is "
        "replaced",
    )
    start.add_argument(
        "--continue",
        dest="go_on",
        action="store_true",
        help="go on from a checkpoint of another program, as after an edit of the model that kept its parameters",
    )
    number_argument(train, "--save-every", "steps between checkpoints (default: one at the end)", default=0)
    log_arguments(train, "step")
    train.set_defaults(run=_train)


def _add_pull(command: Command) -> None:
    pull = command(
        "pull", "Read the trained weights: .npz with the whole state, or .pt with PyTorch's state_dict."
    )
    model_argument(pull)
    target_arguments(pull)
    _port_arguments(pull)
    pull.add_argument(
        "--out", metavar="FILE", type=Path, required=True, help="the file to write: .npz or .pt"
    )
    force_argument(pull)
    pull.set_defaults(run=_pull)


def _add_push(command: Command) -> None:
    push = command(
        "push", "Send weights to a board: a .npz that pull wrote, or a .pt with PyTorch's state_dict."
    )
    model_argument(push)
    target_arguments(push)
    _port_arguments(push)
    push.add_argument("file", metavar="FILE", type=Path, help="the weights: .npz or .pt")
    push.add_argument("--save", action="store_true", help="also write a checkpoint")
    push.add_argument(
        "--partial",
        action="store_true",
        help="move weights by name into a changed model: send the parameters and buffers that both have in the same "
        "shape; the rest of the board's state stays",
    )
    push.set_defaults(run=_push)


def _add_predict(command: Command) -> None:
    predict = command(
        "predict",
        "Print or write a model's outputs for the samples of a data set: on a board, or with --board host on the host.",
    )
    model_argument(predict)
    target_arguments(predict)
    _port_arguments(predict)
    data_arguments(predict)
    predict.add_argument(
        "--weights",
        metavar="FILE",
        type=Path,
        help=".npz or .pt to load first (default: the board's weights)",
    )
    samples_argument(predict)
    predict.add_argument(
        "--test",
        action="store_true",
        help="the samples of the test set, not of the training set; also print accuracy, confusion matrix and F1 of "
        "each class, or the errors of numbers",
    )
    predict.add_argument(
        "--out", metavar="FILE", type=Path, help=".npy, .npz or .csv (default: print as CSV)"
    )
    force_argument(predict)
    predict.set_defaults(run=_predict)


def _add_hil(command: Command) -> None:
    hil = command(
        "hil",
        "Hardware in the loop: check a board, in QEMU or on a port, against the same C on the host. At the end the "
        "board gets its state and checkpoint back.",
    )
    model_argument(hil)
    target_arguments(hil)
    _port_arguments(hil)
    number_argument(hil, "--steps", "training steps in each check (default: %(default)s)", default=20)
    hil.set_defaults(run=_hil)


def _port_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        metavar="PORT",
        help="/dev/ttyACM0, socket://host:number, qemu:firmware.elf or exec:program "
        "(default: qemu, which builds the firmware of the link, build/BOARD/NAME/link.elf, and runs it)",
    )
    baud_argument(parser)
    timeout_argument(parser)


def _session(args: argparse.Namespace) -> Session:
    from ..device.session import Session

    return Session(args.model, args.board, args.name, args.kernels, args.ram, args.trust_board)


def _connect(args: argparse.Namespace, session: Session) -> Board:
    if args.port is None:
        where = " in QEMU" if session.runner == "qemu" else ""
        print(f"no --port: {session.place} is {session.elf}{where}", file=sys.stderr, flush=True)
    fresh = getattr(args, "fresh", False)
    board = session.connect(args.port, args.baud, args.timeout, files=True, fresh=fresh)
    if board.start and not board.could_continue:
        print(f"note: {board.start}", file=sys.stderr)
    return board


def _link(args: argparse.Namespace) -> int:
    from ..codegen.board_link_source import link_source
    from ..owned_files import write_files

    program = _session(args).program
    write_files(args.out, {f"{program.name}_link.c": link_source(program)}, args.force)
    return 0


def _train(args: argparse.Namespace) -> int:
    from ..device.train_command import train

    session = _session(args)
    board = _connect(args, session)
    try:
        return train(session, board, args)
    finally:
        board.close()


def _pull(args: argparse.Namespace) -> int:
    from ..device.weights import check_suffix, write_weights

    check_suffix(args.out)
    session = _session(args)
    board = _connect(args, session)
    try:
        board.check_start()
        state = board.state_dict()
    finally:
        board.close()
    written = write_weights(args.out, session.program, state, board.steps, args.force)
    untrained = "" if board.steps else "; it has not trained: they are its initial values, or what push sent"
    print(
        f"{args.out}: {counted(written, 'array')} after {counted(board.steps, 'step')}, "
        f"of {session.place}{untrained}"
    )
    return 0


def _push(args: argparse.Namespace) -> int:
    from ..device.weights import weights_for

    session = _session(args)
    state, steps, left_out = weights_for(session.program, args.file, args.partial)
    board = _connect(args, session)
    try:
        board.load_state_dict(state, board.steps if steps is None else steps, strict=not args.partial)
        saved = f", checkpoint {board.save()}" if args.save else ""
    finally:
        board.close()
    sent = f"{counted(len(state), 'array')} sent to {session.place}"
    print(f"{args.file}: {sent}, the board is at step {board.steps:,}{saved}{left_out}")
    return 0


def _predict(args: argparse.Namespace) -> int:
    from ..device.predictions import check_suffix, predict

    check_suffix(args.out)
    session = _session(args)
    if session.profile.is_host and args.port is None:
        return predict(session, session.trainer(), args)
    board = _connect(args, session)
    try:
        return predict(session, board, args)
    finally:
        board.close()


def _hil(args: argparse.Namespace) -> int:
    from ..device.hil import hil

    return hil(_session(args), args.port, args.baud, args.timeout, args.steps)
