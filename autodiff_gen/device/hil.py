"""Hardware in the loop: one list of checks for QEMU and real boards."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..codegen.program import Program
from ..errors import AutodiffError
from ..host.trainer import Trainer, host_trainer
from ..ir.types import bound
from .board import Board
from .errors import DeviceError
from .noise import Noise
from .qemu import QemuPort
from .session import Session

TOLERANCE = (
    1e-5  # relative, for tuned kernels, which round differently from the host's; `ref` must be bit-equal
)


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
    trainer: Trainer = field(init=False)

    def __post_init__(self) -> None:
        self.connect()
        self.trainer = host_trainer(self.session.model, kernels="ref")

    def connect(self) -> None:
        self.board = self.session.connect(self.port, self.baud, self.timeout)

    @property
    def exact(self) -> bool:
        """Whether board and host must be bit-equal."""
        return self.session.program.backends.only_ref

    def begin(self) -> None:
        """Reset both to the initial weights."""
        self.board.init()
        self.trainer.init()

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
                self.trainer.train_step(*self.batch(step)),
            )
            self.same(f"loss of step {step + 1}", ours, theirs)

    def weights(self) -> None:
        here = self.trainer.state_dict()
        for name, array in self.board.state_dict().items():
            self.same(name, array, here[name])

    def same(self, what: str, board: Any, host: Any) -> None:
        """Raise Failed if the board's array differs from the host's."""
        a, b = np.asarray(board), np.asarray(host)
        if self.exact and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            return
        scale = float(np.abs(b).max()) if b.size else 0.0
        off = float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()) if b.size else 0.0
        if self.exact or not off <= TOLERANCE * max(1.0, scale):
            raise Failed(f"{what}: off by {off:.3g} (largest value {scale:.3g})")


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
    ours, theirs = b.board.predict(*b.inputs(1)), b.trainer.predict(*b.inputs(1))
    pairs = ours.items() if isinstance(ours, dict) else [("outputs", ours)]
    for name, array in pairs:
        b.same(name, array, theirs[name] if isinstance(theirs, dict) else theirs)


def loads_weights(b: Bench) -> None:
    b.begin()
    b.train(2)
    state = b.board.state_dict()
    b.begin()
    b.board.load_state_dict(state, steps=2)
    b.trainer.load_state_dict(state)
    b.train(2)
    b.weights()


def tolerates_a_noisy_line(b: Bench) -> None:
    """5 % of the frames are damaged, dropped or duplicated."""
    clean = b.board.link.port
    b.begin()
    b.board.link.port = Noise(clean, seed=1, share=0.05)
    try:
        b.train(b.steps)
    finally:
        b.board.link.port = clean
    b.weights()


def rejects_invalid_requests(b: Bench) -> None:
    before = b.board.counters()
    for number in (99, 127):
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
    saved = b.trainer.state_dict()
    b.train(2)
    if isinstance(b.board.link.port, QemuPort):  # a power cut
        b.board.close()
        b.connect()
    else:
        b.board.load()
    if b.board.steps != 3:
        raise Failed(f"the checkpoint is of step {b.board.steps}, not 3")
    b.trainer.load_state_dict(saved)
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
    """Run all checks and print a line for each; returns the exit code. The board's weights are overwritten."""
    bench = Bench(session, port, baud, timeout, steps)
    where = port or f"{session.elf} ({'host' if session.profile.is_host else 'QEMU'})"
    print(f"{session.program.name} on {session.profile.id}, {where}: graph id {session.program.graph_id:08x}")
    bad = 0
    try:
        for check in CHECKS:
            begin = time.monotonic()
            verdict = "ok"
            try:
                check(bench)
            except Skipped as why:
                verdict = f"skipped: {why}"
            except (Failed, DeviceError) as why:
                verdict, bad = f"FAILED: {why}", bad + 1
            print(
                f"  {check.__name__.replace('_', ' '):<32}{time.monotonic() - begin:6.1f} s  {verdict}",
                flush=True,
            )
    finally:
        bench.board.close()
    print(f"{len(CHECKS)} checks, {bad} failed")
    return 1 if bad else 0
