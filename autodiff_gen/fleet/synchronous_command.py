"""`autodiff-gen fleet --synchronous`: steps that twins on the host and boards in emulators make together."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen.link_layout import link_layout
from ..device.board import Board
from ..device.dataset import Dataset, load_dataset
from ..device.errors import LinkError
from ..device.evaluation import accuracy
from ..device.gradients import GradientRank
from ..device.inputs import position
from ..device.log import opened_logs
from ..device.recording_windows import Windows
from ..device.session import Session
from ..device.training import Plan, Record, learning_rate, noting_interrupts
from ..device.weights import read_weights, write_weights
from ..errors import AutodiffError, DataError, counted
from ..owned_files import write_file
from ..progress import doing
from ..reading.npz import npz_of, read_npz
from ..targets.build_commands import build_folder
from .emulated import emulated_board
from .folder import held, last_of
from .identities import identities
from .ports import port_lines
from .ranks import Rank, TwinRank
from .reduction import reduction_of
from .synchronous import RankLost, Synchronous, check_batch, rows_of
from .timeline import set_aside

INTERRUPTED = 130
LOSSES = "losses.npz"  # in the folder of a run
RANKS = 4  # without --boards, --emulated and --port


def _file(steps: int) -> str:
    return f"step-{steps:08}.npz"


def synchronous(args: argparse.Namespace) -> int:
    """Train; returns the exit code: 0 at the end, 130 after Ctrl-C."""
    return _Run(args).run()


class _Run:
    """What the options ask for: the model, its data, who takes part, and where a run that was stopped continues."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.given = Session(args.model, "host", args.name)  # as the model file has it
        self.keeper = self.given.trainer()  # of what is saved
        self.data = self._data()
        self.reduction = self.given.model.accumulate or self._reduction()
        self.session = Session(args.model, "host", args.name, accumulate=self.reduction)
        self.program = self.session.program
        if args.port and self.given.model.accumulate is None:
            raise DataError(
                f'--port: the firmware of a board there has no gradients to send: give ag.Model accumulate="'
                f'{self.reduction}" in {args.model}, then build and upload it'
            )
        self.kinds = [kind for kind, number in args.emulated.items() for _ in range(number)]
        kinds = dict.fromkeys((*self.kinds, *args.port.values()))
        self.sessions = {k: Session(args.model, k, args.name, accumulate=self.reduction) for k in kinds}
        self.twins = args.boards if args.boards is not None else 0 if kinds else RANKS
        self.ranks = self.twins + len(self.kinds) + len(args.port)
        self.out = args.out or Path(build_folder("fleet", self.program.name, {}))
        self.lr = self.program.default_lr if args.lr is None else args.lr
        if args.lr is not None and self.program.default_lr is None:
            raise DataError("--lr: the model's schedule computes the learning rate")
        self.plan, self.end = self._plan()
        self.rate = learning_rate(self.session.model, args.lr)
        self.logs: list[Callable[[Record], None]] = []
        self.losses: list[float] = []  # of the steps of this epoch

    def run(self) -> int:
        with held(self.out):
            return self._run()

    def _run(self) -> int:
        state, done = self._start()
        if done >= self.end:
            print(
                f"nothing to do: {self.out} has step {done:,} of {self.end:,}; more --epochs or --steps continue, "
                "--fresh restarts"
            )
            return 0
        set_aside(self.out)
        print(self._heading(), flush=True)
        if done:
            print(f"continues after step {done:,}", flush=True)
        with ExitStack() as stack:
            self.logs = opened_logs(self.args.log, self.args.tensorboard, done, stack)
            group = Synchronous(self.program, stack.enter_context(self._ranks()), self.reduction)
            stack.callback(group.close)
            with doing("sending the weights"):
                group.load(state, done)
            self.losses = self._begun(done)
            return self._train_or_save(group)

    def _train_or_save(self, group: Synchronous) -> int:
        try:
            return self._train(group)
        except RankLost as error:
            again = "the weights of the last epoch are kept; lower --lr, or repair the data"
            print(again if error.is_rejected else self._rescue(group), flush=True)
            raise

    def _train(self, group: Synchronous) -> int:
        rows, losses, begin, samples = rows_of(self.program), self.losses, time.monotonic(), 0
        with noting_interrupts() as interrupted:
            for step, epoch, chosen in self.plan.batches(group.steps):
                if step >= self.end or interrupted:
                    break
                with doing(f"step {step + 1:,} of {self.end:,}"):
                    losses.append(group.step(self.data.train, rows.shares(chosen, len(group.ranks)), self.lr))
                samples += len(chosen)
                is_whole = self.plan.place(step + 1)[1] == 0
                if is_whole or step + 1 == self.end:
                    loss, seconds = sum(losses) / len(losses), time.monotonic() - begin
                    self._keep(group, Record(step + 1, epoch + 1, samples, seconds, loss, lr=self.rate(step)))
                if is_whole:
                    losses.clear()
        self._save_losses(group)
        if group.steps < self.end:
            self._save(group)
            print(f"stopped; {self._where(group)}; the same command continues there")
            return INTERRUPTED
        print(self._where(group))
        return 0

    # What the options say

    def _data(self) -> Dataset:
        args, layout = self.args, link_layout(self.given.program)
        windows = Windows(args.window, args.stride)
        data = load_dataset(args.data, self.given.path, layout, args.columns, (), windows, args.classes)
        chosen = slice(args.samples)
        return replace(data, train={name: array[chosen] for name, array in data.train.items()})

    def _reduction(self) -> str:
        program = self.given.program
        names = sorted(
            (a.name for a in link_layout(program).inputs), key=lambda name: position(program, name)
        )
        return reduction_of(self.keeper, self.data.train, names)

    def _plan(self) -> tuple[Plan, int]:
        """The samples of each step, and the number of steps."""
        args, rows, size = self.args, rows_of(self.program), len(self.data)
        n = args.batch or rows.most
        check_batch(self.program, n, self.ranks, size)
        batch = min(n * self.ranks, size)
        plan = Plan(size, batch, args.epochs or 1, args.seed, rows.least)
        if not args.steps:
            return plan, plan.steps
        return replace(plan, epochs=-(-args.steps // plan.per_epoch)), args.steps

    def _heading(self) -> str:
        who = [f"{counted(self.twins, 'twin')} on the host"] if self.twins else []
        who += [f"{n} x {kind} emulated" for kind, n in Counter(self.kinds).items()]
        who += [f"{n} x {kind} at a port" for kind, n in Counter(self.args.port.values()).items()]
        return (
            f"{self.program.name}: {', '.join(who)}; {counted(len(self.data), 'sample')} from {self.data.source}\n"
            f"{self.plan.batch} samples a step, {counted(self.plan.per_epoch, 'step')} an epoch; gradients are a "
            f"{self.reduction} over the samples of all ranks"
        )

    # Who takes part

    @contextmanager
    def _ranks(self) -> Iterator[list[Rank]]:
        with ExitStack() as stack:
            ranks, linked = list[Rank](), list[Board]()
            with doing("preparing the boards"):
                ranks += [TwinRank(self.session.trainer(), f"twin {k}") for k in range(self.twins)]
                for number, (place, kind, open_board) in enumerate(self._boards(), self.twins):
                    try:
                        board = open_board()
                    except AutodiffError as error:
                        raise LinkError(f"board {number} ({place}): {error}") from None
                    stack.callback(board.close)
                    linked.append(board)
                    ranks.append(GradientRank(board, f"board {number} ({place})", kind))
                identities(linked, [rank.name for rank in ranks[self.twins :]])
            yield ranks

    def _boards(self) -> Iterator[tuple[str, str, Callable[[], Board]]]:
        """The place and the kind of each board, and how to connect to it."""
        timeout = self.args.timeout
        for k, kind in enumerate(self.kinds):
            folder = self.out / "boards" / str(k)
            folder.mkdir(parents=True, exist_ok=True)
            yield kind, kind, partial(emulated_board, self.sessions[kind], folder, timeout)
        for line in port_lines(self.args.port, self.sessions, self.args.baud, timeout, fresh=False):
            yield line.name, line.kind, line.connected

    # The weights

    def _file(self, steps: int) -> Path:
        return self.out / _file(steps)

    def _start(self) -> tuple[dict[str, Any], int]:
        """The whole state after the last step in the folder, and its number; otherwise those of the model."""
        last = last_of(self.out, _file, self.args.fresh)
        steps = None
        if last:
            file = self._file(last)
            try:
                state, steps = read_weights(file)
                self.keeper.load_state_dict(state)
            except AutodiffError as error:
                raise DataError(f"{file}: {error}; --fresh begins anew") from None
        return {**self.session.trainer().state_dict(), **self.keeper.state_dict()}, steps or 0

    def _where(self, group: Synchronous) -> str:
        return f"the weights of step {group.steps:,} of {self.end:,} are {self._file(group.steps)}"

    def _save(self, group: Synchronous) -> None:
        """Write the state of the ranks, without what the user's model does not have."""
        state = group.state()
        own = {name: state[name] for name in self.given.program.state_names}
        self.keeper.load_state_dict(own)
        self.out.mkdir(parents=True, exist_ok=True)
        write_weights(self._file(group.steps), self.given.program, own, group.steps, force=True)

    def _save_losses(self, group: Synchronous) -> None:
        """Those of an epoch that is not whole, for the mean that the continued run prints."""
        if not self.losses:
            return
        arrays = {"step": np.int64(group.steps), "losses": np.array(self.losses, np.float64)}
        write_file(self.out / LOSSES, npz_of(arrays), force=True)

    def _begun(self, done: int) -> list[float]:
        """The losses of an epoch in which the last run was stopped, after so many steps."""
        path = self.out / LOSSES
        if self.plan.place(done)[1] == 0 or not path.is_file():
            return []
        arrays = read_npz(path, DataError)
        step, losses = (arrays.get(name, np.empty(0)) for name in ("step", "losses"))
        return losses.tolist() if losses.ndim == 1 and step.shape == () and step == done else []

    def _keep(self, group: Synchronous, record: Record) -> None:
        """Write the weights of an epoch, and print its line; the seconds count from the start of this run."""
        group.equalize()
        self._save(group)
        record.accuracy = right = accuracy(self.keeper, self.data) if self.data.tests else None
        for log in self.logs:
            log(record)
        shown = "" if right is None else f"   accuracy {right:7.2%}"
        print(
            f"epoch {record.epoch:<4} step {record.step:<7,} loss {record.loss:.4f}{shown}   {record.seconds:.2f} s",
            flush=True,
        )

    def _rescue(self, group: Synchronous) -> str:
        """Save the state of a rank that answers; says where the same command continues."""
        try:
            self._save(group)
            self._save_losses(group)
        except RankLost:
            return "no rank answers; the same command continues after the last epoch"
        return f"{self._where(group)}; the same command continues there"
