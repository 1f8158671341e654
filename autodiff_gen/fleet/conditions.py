"""The conditions of virtual boards: their speed, their lines, and how often boards vanish or come late."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..codegen.instruction_estimate import instructions
from ..device.frames import PAYLOAD
from ..device.session import Session
from ..errors import DataError, listed, quoted
from ..targets.schema import near
from ..targets.toml_file import read_toml, shown


@dataclass(frozen=True)
class Conditions:
    """The conditions of one kind of board. step: seconds of a local step of a whole batch; or instructions: how many it
    executes. rate: bytes a second of the line; latency: seconds of a transfer; loss: the share of frames that are sent
    again. vanish: the probability that a board vanishes in a round; late: that it begins late, by `delay` seconds in
    the mean. payload: the most bytes of data in a frame. deadline: seconds of a round."""

    step: float | None = None
    instructions: float | None = None
    rate: float = 11520.0
    latency: float = 0.0
    loss: float = 0.0
    vanish: float = 0.0
    late: float = 0.0
    delay: float = 10.0
    payload: float = PAYLOAD
    deadline: float | None = None


NAMES = tuple(f.name for f in fields(Conditions))
OF_A_KIND = tuple(name for name in NAMES if name != "deadline")
PAYLOADS = range(60, PAYLOAD + 1, 4)  # AG_LINK_PAYLOAD of firmware
SHARES = ("loss", "vanish", "late")  # from 0 to 1; `loss` is at most 0.9, so that frames arrive


@dataclass(frozen=True)
class Profile:
    """The virtual boards of a run: the kind of each, and the conditions of kinds."""

    boards: list[str]
    kinds: Mapping[str, Conditions]
    deadline: float | None

    def payload(self, board: int) -> int:
        """The most bytes of data in a frame to or from a board."""
        return int(self.kinds[self.boards[board]].payload)


def read_profile(text: str, given: Mapping[str, float], session: Callable[[str], Session]) -> Profile:
    """`stm32=700,mps2_an385=300`, or a TOML file that has conditions of all boards, and a section for each kind with
    `boards` and its own conditions. `given`: conditions by name, which replace conditions of all boards. `session`:
    compiles the model for a kind of board, to estimate the time of a step. Raises DataError."""
    where = "--profile"
    data: dict[str, Any] = {}
    if text.endswith(".toml"):
        where, data = text, read_toml(Path(text), DataError)
    else:
        for part in text.split(","):
            name, _, number = part.partition("=")
            if not name or name in data or not (number.isascii() and number.isdigit()):
                raise DataError(
                    f"--profile: expected boards such as stm32=700,mps2_an385=300, or a .toml file, got {text!r}"
                )
            data[name] = {"boards": int(number)}
    sections = {name: part for name, part in data.items() if isinstance(part, dict)}
    shared = {name: value for name, value in data.items() if name not in sections}
    for numbers, source in ((shared, where), (given, "--conditions")):
        for name, value in numbers.items():
            check_condition(name, value, source, NAMES)
    common = {**shared, **given}
    boards, kinds = list[str](), dict[str, Conditions]()
    for kind, section in sections.items():
        own = {name: value for name, value in section.items() if name != "boards"}
        for condition, value in own.items():
            check_condition(condition, value, f"{where}: {kind}", OF_A_KIND)
        count = section.get("boards")
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise DataError(f"{where}: {kind}: expected boards = a number of at least 1, got {shown(count)}")
        boards += [kind] * count
        found = Conditions(**{**common, **own})
        if found.step is not None and found.instructions is not None:
            raise DataError(f"{where}: {kind}: step and instructions exclude each other: give one of them")
        if found.step is None:
            found = replace(found, step=step_seconds(session(kind), found.instructions))
        kinds[kind] = found
    if not boards:
        raise DataError(f"{where}: has no section of a kind of board, such as [stm32] with boards = 10")
    return Profile(boards, kinds, common.get("deadline"))


def check_condition(name: str, value: Any, where: str, known: tuple[str, ...]) -> None:
    """Raises DataError for a name that is not `known`, or a number out of range."""
    if name not in known:
        raise DataError(f"{where}: unknown condition {quoted(name)}{near(name, known)}")
    wrong = not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value)
    least = "at least 0" if name in ("latency", *SHARES) else "more than 0"
    if wrong or value < 0 or (value == 0 and least == "more than 0"):
        raise DataError(f"{where}: {name} must be a number of {least}, got {shown(value)}")
    if name == "payload" and value not in PAYLOADS:
        raise DataError(f"{where}: payload must be a multiple of 4 from 60 to {PAYLOAD}, got {shown(value)}")
    if name in SHARES and (value > 1 or (name == "loss" and value > 0.9)):
        raise DataError(
            f"{where}: {name} is a share, at most {0.9 if name == 'loss' else 1}, got {shown(value)}"
        )


def step_seconds(session: Session, counted: float | None = None) -> float:
    """Seconds of a training step of a whole batch on a board: its instructions, times the cycles of an instruction,
    divided by the clock. counted: the instructions; None estimates them by the cost table. Raises DataError for a board
    without these numbers."""
    cost, clock = session.program.backends.cost, session.profile.target.clock_hz
    missing = [
        name for name, known in (("cost.cycles", cost.cycles), ("target.clock_hz", clock)) if not known
    ]
    if missing or clock is None:
        raise DataError(
            f"--profile: the board file of {session.profile.id} has no {listed(missing)}: give the seconds of a local "
            f"step in a .toml file, as [{session.profile.id}] with step = 0.01"
        )
    executed = instructions(session.program)["train_step"] if counted is None else counted
    return executed * cost.cycles / clock
