"""`autodiff-gen train`: output and log files of a training run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from ..errors import DataError, counted
from .board import Board
from .dataset import Dataset, load_dataset, rounded_to_integers
from .inputs import FILE
from .log import CsvLog, Progress, TensorBoard, curve
from .metrics import numbered
from .recording_windows import RecordingWindows
from .session import Session
from .training import BatchPlan, Record, Run, learning_rate, make_batch_plan, run_training

T = TypeVar("T", CsvLog, TensorBoard)
INTERRUPTED = 130


def train(session: Session, board: Board, args: argparse.Namespace) -> int:
    """Train; returns the exit code: 0 at the end of the plan, 130 after Ctrl-C."""
    windows = RecordingWindows(args.window, args.stride)
    loaded = load_dataset(args.data, session.path, board.layout, args.columns, (), windows, args.classes)
    data = _cut(loaded, args.samples, args.tests)
    if args.send is not None:
        data, board.scales = rounded_to_integers(data, board.layout, args.send)
    mixed = args.shuffle is None and not args.no_shuffle and data.is_sorted(board.layout)
    plan = make_batch_plan(board, data, args.more or args.epochs, args.batch, 0 if mixed else args.shuffle)
    if args.lr is not None and session.program.default_lr is None:
        raise DataError("--lr: the model's schedule computes the learning rate")
    if args.fresh:
        board.init()
    elif args.go_on and board.could_continue:
        print(f"continues from a checkpoint of another program, step {board.load(any_program=True):,}")
    board.check_start(trains=True)
    first = board.steps
    if args.more is not None:
        plan = replace(plan, begin=first)
    print(
        f"{session.program.name} on {session.profile.id}: {counted(len(data), 'sample')} from {data.source}, "
        f"{plan.batch} a step, {counted(plan.per_epoch, 'step')} an epoch"
    )
    if data.note:
        print(data.note)
    if data.classes:
        print(f"classes: {numbered(data.classes)}")
    if mixed:
        print(
            "the samples are sorted by class: --shuffle 0 mixes them in every epoch; --no-shuffle keeps their order"
        )
    for name, scale in board.scales.items():
        print(f"{name}: rounded to integers ({args.send}) times {scale:.6g}")
    print(_speed(board, data, plan))
    if first >= plan.steps:
        other = "" if first == plan.steps else ", so it trained on other data, or in more epochs"
        print(
            f"nothing to do: the board has trained {first:,} of {plan.steps:,} steps{other}; "
            f"--more 1 trains one more pass over {data.source}, --fresh restarts"
        )
        return 0
    if plan.begin:
        print(f"continues after step {first:,} with {counted(plan.epochs, 'more epoch')}")
    elif first:
        print(
            f"continues at step {first:,}, epoch {first // plan.per_epoch + 1}, if its steps were on these data; "
            "if not, --more 1 trains a whole pass over them; --fresh would restart"
        )
    same = "the same command without --fresh" if args.fresh else "the same command"
    again = f"{same} continues from there" if args.more is None else "--more begins a whole pass from there"
    return _report(board, plan, _logged(session, board, data, plan, args, first), first, again)


def _speed(board: Board, data: Dataset, plan: BatchPlan) -> str:
    """The bytes of a sample on the line, and the samples per second that the line allows."""
    names = [a.name for a in sorted(board.layout.inputs, key=lambda a: board.order_of(a.name))]
    size = board.bytes_of([data.train[n][: plan.batch] for n in names]) / plan.batch
    text = f"{size:,.0f} bytes a sample on the link"
    rate = board.link.port.baud
    if board.folder is not None:
        return f"{text}, without the inputs: QEMU reads them from {board.folder / FILE}"
    return text if rate is None else f"{text}: at most {rate / 10 / size:,.1f} samples/s at {rate:,} baud"


def _logged(
    session: Session, board: Board, data: Dataset, plan: BatchPlan, args: argparse.Namespace, first: int
) -> Run:
    progress, rate = Progress(plan, first), learning_rate(session.model, args.lr)
    listeners: list[Callable[[Record], None]] = [progress]
    with ExitStack() as stack:

        def opened(listener: T) -> T:
            stack.callback(listener.close)
            return listener

        if args.log is not None:
            log_file = opened(CsvLog(args.log, first, plan.past if plan.begin else None))
            listeners.append(log_file)
            if log_file.renamed is not None:
                print(f"{args.log} has rows of another run; it is now {log_file.renamed}")
        if args.tensorboard is not None:
            listeners.append(opened(TensorBoard(args.tensorboard, first)))
        stack.callback(progress.end)

        def log(record: Record) -> None:
            for listener in listeners:
                listener(record)

        sys.stdout.flush()  # progress is printed on stderr
        return run_training(board, data, plan, log, lr=args.lr, save_every=args.save_every, rate=rate)


def _report(board: Board, plan: BatchPlan, run: Run, first: int, again: str) -> int:
    sys.stderr.flush()
    plot = curve(run.losses, first)
    if plot:
        print(f"\nloss\n{plot}\n")
    t = board.link.traffic
    checkpoint = (
        f"checkpoint {run.checkpoint}"
        if run.checkpoint is not None
        else "no flash for a checkpoint; save the weights with pull"
    )
    steps, resent = counted(len(run.losses), "step"), counted(t.resent, "request")
    print(f"{steps}, {t.sent + t.received:,} bytes, {resent} sent again; {checkpoint}")
    if run.stopped:
        print(f"stopped at step {run.steps:,} of {plan.steps:,}; {again}")
        return INTERRUPTED
    return 0


def _cut(data: Dataset, samples: int | None, tests: int | None) -> Dataset:
    train = {n: a[:samples] for n, a in data.train.items()}
    test = {} if tests == 0 else {n: a[:tests] for n, a in data.test.items()}
    return replace(data, train=train, test=test)
