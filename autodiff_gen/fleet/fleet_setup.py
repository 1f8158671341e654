"""A fleet, for every way to run one: the model for each kind of board, the data set, and who takes part."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..codegen.board_link_layout import link_layout
from ..device.dataset import Dataset, load_dataset
from ..device.recording_windows import RecordingWindows
from ..device.session import Session
from ..errors import DataError, counted
from ..targets.build_commands import build_folder
from .emulated import emulated_lines
from .linked import LinkedBoard
from .ports import port_lines


def number_of_twins(args: argparse.Namespace, default: int) -> int:
    """The number of twins; `default` if the options name no boards."""
    named = args.emulated or args.port
    return int(args.boards) if args.boards is not None else 0 if named else default


class Fleet:
    """`session`: the model compiled for twins; `emulated`: the kind of each emulated board. Raises AutodiffError for
    options that do not fit the model."""

    def __init__(self, args: argparse.Namespace, twins: int, needs_data: bool = True) -> None:
        """twins: the number of twins. needs_data: whether data are needed even if all boards have their own samples."""
        self.args = args
        self.session = Session(args.model, "host", args.name)
        self.program = self.session.program
        self.layout = link_layout(self.program)
        self.emulated = [kind for kind, number in args.emulated.items() for _ in range(number)]
        self.twins, self.boards = twins, twins + len(self.emulated) + len(args.port)
        self.lr = self._learning_rate()
        self.data = self._data(needs_data)
        self.out: Path = args.out or Path(build_folder("fleet", self.program.name, {}))

    def for_boards(self, accumulate: str = "") -> dict[str, Session]:
        """The model for each kind of board over the link. `accumulate`: see Session. Raises LinkError for a kind that
        has no emulator."""
        args, kinds = self.args, dict.fromkeys((*self.emulated, *self.args.port.values()))
        found = {kind: Session(args.model, kind, args.name, accumulate=accumulate) for kind in kinds}
        for kind in args.emulated:
            _ = found[kind].runner
        return found

    def lines(
        self, sessions: dict[str, Session], sets: Sequence[bytes] | None = None, fresh: bool = False
    ) -> list[LinkedBoard]:
        """Lines to the emulated boards, then to the boards at ports. `sets`: the samples of each emulated board, if it
        trains on its own. `fresh`: boards forget their rounds."""
        args, emulated = self.args, [sessions[kind] for kind in self.emulated]
        lines = emulated_lines(emulated, sets, self.out / "boards", fresh, args.timeout)
        return [*lines, *port_lines(args.port, sessions, args.baud, args.timeout, fresh)]

    def who(self, twins_as: str = "") -> str:
        """Who takes part, and on which data, for the first line of a run."""
        who = [f"{counted(self.twins, 'twin')} on the host{twins_as}"] if self.twins else []
        who += [f"{n} x {kind} emulated" for kind, n in Counter(self.emulated).items()]
        who += [f"{n} x {kind} at a port" for kind, n in Counter(self.args.port.values()).items()]
        text = f"{self.program.name}: {', '.join(who)}"
        return (
            text
            if self.data is None
            else f"{text}; {counted(len(self.data), 'sample')} from {self.data.source}"
        )

    def _learning_rate(self) -> float | None:
        """None where a schedule computes it."""
        if self.args.lr is not None and self.program.default_lr is None:
            raise DataError("--lr: the model's schedule computes the learning rate")
        return self.program.default_lr if self.args.lr is None else float(self.args.lr)

    def _data(self, is_needed: bool) -> Dataset | None:
        """Returns None if no board needs data and there is none to test with."""
        args, windows = self.args, RecordingWindows(self.args.window, self.args.stride)
        is_needed = is_needed or bool(self.twins or self.emulated)
        if not is_needed and args.data is None and not (self.session.path.parent / "data.py").exists():
            return None
        data = load_dataset(
            args.data, self.session.path, self.layout, args.columns, (), windows, args.classes
        )
        chosen = slice(args.samples)
        return replace(data, train={name: array[chosen] for name, array in data.train.items()})
