"""Hardware in the loop: one list of checks for QEMU and real boards, after which the state of the board is restored."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen.program import Program
from ..errors import AutodiffError, counted
from ..host.trainer import host_trainer
from ..ir.types import bound
from .board import Board
from .errors import DeviceError, LinkError
from .fault_injection import FaultyTransport
from .qemu import QemuPort
from .reference import SPREAD, TOLERANCE, Reference
from .session import Session
from .snapshot import Snapshot
from .weights import write_weights


class Failed(AutodiffError):
    """A check failed."""


@dataclass
class Bench:
    """A board under test, and the same C on the host as reference."""

    session: Session
    port: str | None
    baud: int
    timeout: float
    steps: int
    board: Board = field(init=False)
    host: Reference = field(init=False)

    def __post_init__(self) -> None:
        self.connect()
        exact = self.session.program.backends.only_ref
        self.host = Reference(lambda: host_trainer(self.session.model, kernels="ref"), exact)

    def connect(self) -> None:
        self.board = self.session.connect(self.port, self.baud, self.timeout)

    def restore(self, before: Snapshot) -> None:
        """Restore the state of the board, in a new session: an interrupted one cannot be used. Raises LinkError,
        which names the file with the state, if it does not succeed."""
        try:
            self.board.close()
            self.connect()
            before.restore(self.board)
        except (AutodiffError, KeyboardInterrupt) as error:
            kept = Path(f"{self.session.program.name}_before_hil.npz")
            write_weights(kept, self.session.program, before.now.arrays, before.now.steps)
            raise LinkError(
                f"{self.session.place}: its earlier state was not restored ({str(error) or 'interrupted'}); "
                f"it is in {kept}: send it with autodiff-gen push"
            ) from None
        print(f"the state of the board is restored: step {before.now.steps:,}")

    def begin(self) -> None:
        """Reset both to the initial weights."""
        self.board.init()
        self.host.init()

    def batch(self, step: int) -> list[Any]:
        """Inputs and targets of a step, in the model's order."""
        rng = np.random.default_rng((5, step))
        names = {a.name: random_array(self.session.program, a.name, rng) for a in self.board.layout.inputs}
        return [names[n] for n in sorted(names, key=self.board.order_of)]

    def inputs(self, step: int) -> list[Any]:
        targets = {a.name for a in self.board.layout.inputs if a.is_target}
        names = sorted((a.name for a in self.board.layout.inputs), key=self.board.order_of)
        return [x for n, x in zip(names, self.batch(step), strict=True) if n not in targets]

    def train(self, count: int) -> None:
        """Train `count` steps on both and compare every loss."""
        for _ in range(count):
            step = self.board.steps
            ours, theirs = (
                self.board.train_step(*self.batch(step)),
                self.host.train_step(*self.batch(step)),
            )
            self.same("loss", ours, theirs, f" of step {step + 1}")

    def weights(self) -> None:
        here = self.host.state_dict()
        for name, array in self.board.state_dict().items():
            self.same(name, array, here[name])

    def predict(self) -> None:
        ours, theirs = self.board.predict(*self.inputs(1)), self.host.predict(*self.inputs(1))
        for name, array in theirs.items():
            self.same(name, ours[name] if isinstance(ours, dict) else ours, array)

    def same(self, name: str, board: Any, host: Any, when: str = "") -> None:
        """Raise Failed if the board's array differs from the host's by more than rounding explains."""
        off = self.host.differs(name, board, host)
        if off:
            raise Failed(f"{name}{when}: {off}")


def random_array(program: Program, name: str, rng: np.random.Generator) -> Any:
    """A full batch of an input: multiples of 1/255 in [0, 1] for floats, integers within their range."""
    train = next(e for e in program.entries if e.name == "train_step")
    arg = next(a for a in train.args if a.name == name)
    shape = bound(arg.type.shape, program.batch)
    if arg.type.dtype.kind == "f":
        return rng.integers(0, 256, shape).astype(np.float32) / np.float32(255)
    if arg.type.dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0, arg.classes or 100, shape).astype(arg.type.dtype.numpy)


# Checks; the names are printed


def trains_like_the_host(b: Bench) -> None:
    b.begin()
    b.train(b.steps)
    b.weights()


def predicts_like_the_host(b: Bench) -> None:
    """After training, and with the initial weights, in which there is no rounding yet."""
    b.predict()
    b.begin()
    b.predict()


def loads_weights(b: Bench) -> None:
    b.begin()
    b.train(2)
    state = b.board.state_dict()
    b.begin()
    b.board.load_state_dict(state, steps=2)
    b.host.load_state_dict(state)
    b.train(2)
    b.weights()


def tolerates_a_noisy_line(b: Bench) -> None:
    """5 % of the frames are damaged, dropped or duplicated."""
    clean = b.board.link.port
    b.begin()
    b.board.link.port = FaultyTransport(clean, seed=1, share=0.05)
    try:
        b.train(b.steps)
    finally:
        b.board.link.port = clean
    b.weights()


def rejects_invalid_requests(b: Bench) -> None:
    before = b.board.counters()
    for number in (99, 126):
        if b.board.link.exchange(number)[0] != -32:
            raise Failed(f"request {number} was not rejected")
    b.board.link.port.write(bytes(range(256)) * 4)
    after = b.board.counters()
    if after.trained != before.trained or after.damaged == before.damaged:
        raise Failed("random bytes were not counted as damaged, or were trained on")


def resumes_from_a_checkpoint(b: Bench) -> None:
    b.begin()
    b.train(3)
    if not b.board.greeting.has_flash:
        raise Skipped("no flash for checkpoints")
    b.board.save()
    saved = b.host.snapshot()
    b.train(2)
    if isinstance(b.board.link.port, QemuPort):  # a power cut
        b.board.close()
        b.connect()
    else:
        b.board.load()
    if b.board.steps != 3:
        raise Failed(f"the checkpoint is of step {b.board.steps}, not 3")
    b.host.restore(saved)
    b.train(2)
    b.weights()


def loses_no_bytes(b: Bench) -> None:
    lost = b.board.counters().overruns
    if lost:
        raise Failed(f"the board's receive buffer overran; {lost} bytes were lost")


class Skipped(AutodiffError):
    """A check that this board does not support."""


CHECKS: tuple[Callable[[Bench], None], ...] = (
    trains_like_the_host,
    predicts_like_the_host,
    loads_weights,
    tolerates_a_noisy_line,
    rejects_invalid_requests,
    resumes_from_a_checkpoint,
    loses_no_bytes,
)


def hil(session: Session, port: str | None, baud: int, timeout: float, steps: int) -> int:
    """Run all checks and print a line for each; returns the exit code. The checks overwrite the board's weights and
    checkpoint, which are restored at the end, also after a failure or Ctrl-C."""
    bench = Bench(session, port, baud, timeout, steps)
    where = port or f"{session.elf} ({'host' if session.profile.is_host else 'QEMU'})"
    print(
        f"{session.program.name} on {session.profile.id}, {where}: graph id {session.program.graph_id:08x}, "
        f"program {session.program.program_id:08x}"
    )
    try:
        bench.board.check_start()  # checkpoints that the checks would replace
        before = Snapshot(bench.board)
        try:
            before.load(bench.board)
            bad = sum(not _passes(check, bench) for check in CHECKS)
        finally:
            bench.restore(before)
    finally:
        bench.board.close()
    if bench.host.moved:
        names = ", ".join(sorted(bench.host.moved))
        print(
            f"rounding changes {names} by more than {TOLERANCE:g}: compared within {SPREAD:g} times this change"
        )
    print(f"{counted(len(CHECKS), 'check')}, {bad} failed")
    return 1 if bad else 0


def _passes(check: Callable[[Bench], None], bench: Bench) -> bool:
    begin = time.monotonic()
    verdict, passed = "ok", True
    try:
        check(bench)
    except Skipped as why:
        verdict = f"skipped: {why}"
    except (Failed, DeviceError) as why:
        verdict, passed = f"FAILED: {why}", False
    name = check.__name__.replace("_", " ")
    print(f"  {name:<32}{time.monotonic() - begin:6.1f} s  {verdict}", flush=True)
    return passed
