"""`autodiff-gen fleet --synchronous`: steps that twins on the host, and boards in emulators and at ports, make
together."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from ..codegen.board_link_layout import step_sizes
from ..device.board import Board
from ..device.dataset import Dataset, check_batch
from ..device.errors import LinkError
from ..device.gradients import GradientRank
from ..device.inputs import position
from ..device.session import Session
from ..device.train_command import INTERRUPTED
from ..device.training import BatchPlan, Record, learning_rate, noting_interrupts
from ..errors import AutodiffError, DataError, counted
from ..progress import doing
from .fleet_setup import Fleet, number_of_twins
from .folder import held
from .identities import identities
from .ranks import Rank, TwinRank
from .reduction import reduction_of
from .step_results import StepResults
from .synchronous import RankLost, Synchronous, divided
from .timeline import set_aside

RANKS = 4  # without --boards, --emulated and --port


def synchronous(args: argparse.Namespace) -> int:
    """Train; returns the exit code: 0 at the end, 130 after Ctrl-C."""
    return _Run(args).run()


class _Run:
    """A run: the fleet, the model with gradients to send, and the samples of each step."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.fleet = fleet = Fleet(args, number_of_twins(args, RANKS))
        assert fleet.data is not None
        self.data: Dataset = fleet.data
        given = fleet.session.model.accumulate
        self.reduction = given or self._reduction()
        self.session = Session(args.model, "host", args.name, accumulate=self.reduction)
        self.program = self.session.program
        if args.port and given is None:
            raise DataError(
                f'--port: the firmware of a board there has no gradients to send: give ag.Model accumulate="'
                f'{self.reduction}" in {args.model}, then build and upload it'
            )
        self.sessions = fleet.for_boards(self.reduction)
        self.plan, self.end = self._plan()
        self.rate = learning_rate(self.session.model, args.lr)
        self.results = StepResults(fleet.out, fleet.session, self.data, self.end)

    def run(self) -> int:
        with held(self.fleet.out):
            return self._run()

    def _run(self) -> int:
        args, results = self.args, self.results
        state, done = results.begin(args.fresh)
        if done >= self.end:
            print(
                f"nothing to do: {results.out} has step {done:,} of {self.end:,}; more --epochs or --steps continue, "
                "--fresh restarts"
            )
            return 0
        set_aside(results.out)
        print(self._heading(), flush=True)
        if done:
            print(f"continues after step {done:,}", flush=True)
        with ExitStack() as stack:
            results.open(args.log, args.tensorboard, done, stack)
            group = Synchronous(self.program, stack.enter_context(self._ranks()), self.reduction)
            stack.callback(group.close)
            with doing("sending the weights"):
                group.load({**self.session.trainer().state_dict(), **state}, done)
            if self.plan.place(done)[1]:
                results.continue_epoch(done)
            return self._train_or_save(group)

    def _train_or_save(self, group: Synchronous) -> int:
        try:
            return self._train(group)
        except RankLost as error:
            again = "the weights of the last epoch are kept; lower --lr, or repair the data"
            print(again if error.is_rejected else self.results.rescue(group), flush=True)
            raise

    def _train(self, group: Synchronous) -> int:
        results, sizes, begin, samples = self.results, self._sizes(), time.monotonic(), 0
        losses, lr = results.losses, self.fleet.lr
        with noting_interrupts() as interrupted:
            for step, epoch, chosen in self.plan.batches(group.steps):
                if step >= self.end or interrupted:
                    break
                with doing(f"step {step + 1:,} of {self.end:,}"):
                    losses.append(group.step(self.data.train, divided(chosen, sizes, len(group.ranks)), lr))
                samples += len(chosen)
                is_whole = self.plan.place(step + 1)[1] == 0
                if is_whole or step + 1 == self.end:
                    loss, seconds = sum(losses) / len(losses), time.monotonic() - begin
                    record = Record(step + 1, epoch + 1, samples, seconds, loss, lr=self.rate(step))
                    results.keep(group, record)
                if is_whole:
                    losses.clear()
        if group.steps < self.end:
            results.stop(group)
            print(f"stopped; {results.where(group)}; the same command continues there")
            return INTERRUPTED
        results.keep_losses(group)
        print(results.where(group))
        return 0

    def _reduction(self) -> str:
        session = self.fleet.session
        names = [a.name for a in self.fleet.layout.inputs]
        names.sort(key=lambda name: position(session.program, name))
        return reduction_of(session.trainer(), self.data.train, names)

    def _sizes(self) -> range:
        return step_sizes(self.program, "accumulate")

    def _plan(self) -> tuple[BatchPlan, int]:
        """The samples of each step, and the number of steps."""
        args, sizes, samples, ranks = self.args, self._sizes(), len(self.data), self.fleet.boards
        n = args.batch or sizes[-1]
        check_batch(sizes, n, adds_up=True)
        if ranks * sizes[0] > samples:
            raise DataError(f"{ranks:,} boards for {samples:,} samples: each needs {sizes[0]} at least")
        plan = BatchPlan(samples, min(n * ranks, samples), args.epochs or 1, args.seed, sizes[0])
        if not args.steps:
            return plan, plan.steps
        return replace(plan, epochs=-(-args.steps // plan.per_epoch)), args.steps

    def _heading(self) -> str:
        return (
            f"{self.fleet.who()}\n{self.plan.batch} samples a step, {counted(self.plan.per_epoch, 'step')} an epoch; "
            f"gradients are a {self.reduction} over the samples of all ranks"
        )

    @contextmanager
    def _ranks(self) -> Iterator[list[Rank]]:
        twins, emulated = self.fleet.twins, len(self.fleet.emulated)
        with ExitStack() as stack:
            ranks, linked = list[Rank](), list[Board]()
            with doing("preparing the boards"):
                ranks += [TwinRank(self.session.trainer(), f"twin {k}") for k in range(twins)]
                for k, line in enumerate(self.fleet.lines(self.sessions)):
                    name = f"board {twins + k} ({line.kind if k < emulated else line.name})"
                    try:
                        board = line.connected()
                    except AutodiffError as error:
                        raise LinkError(f"{name}: {error}") from None
                    stack.callback(board.close)
                    linked.append(board)
                    ranks.append(GradientRank(board, name, line.kind))
                identities(linked, [rank.name for rank in ranks[twins:]])
            yield ranks
