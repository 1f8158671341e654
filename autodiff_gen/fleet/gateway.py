"""The gateway of a fleet: the boards of rounds, each with its own samples, and how they train."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..codegen.board_link_layout import compared_classes, entry, label_and_scores, step_sizes
from ..device.dataset import check_batch
from ..device.differences import Encoding
from ..device.errors import LinkError
from ..device.peer import MOST_STEPS
from ..device.rounds import LocalWork, shared_slots
from ..device.session import Session
from ..errors import DataError
from ..progress import doing
from .board_group import Members
from .clip_and_noise import clip_and_noise_of
from .conditions import Profile, read_profile
from .fleet_setup import Fleet, number_of_twins
from .linked import LinkedBoards
from .noise_seeds import seeds_in
from .records import records
from .round_request import RoundSettings
from .split import batches, held_out, split
from .twins import Twins
from .virtual import VirtualTime

TWINS = 10  # without --boards, --emulated and --port


class Gateway(Fleet):
    """A fleet that trains in rounds. `parts` and `tests`: the samples that each twin and emulated board trains on, and
    tests on."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.profile = _profile(args)
        super().__init__(args, _number_of_twins(args, self.profile), needs_data=False)
        self.sessions = self.for_boards()
        held = [held_out(p, args.evaluate or 0.0, (args.seed, k)) for k, p in enumerate(self._parts())]
        self.parts, self.tests = [train for train, _ in held], [test for _, test in held]
        self.settings = self._settings()
        self.slots = shared_slots(self.program, self.settings.local_buffers)

    def heading(self) -> str:
        """The first two lines of a run."""
        virtual = "" if self.profile is None else f" as {_described(self.profile)}"
        sizes = [part.size for part in self.parts]
        shares = f"{min(sizes):,} to {max(sizes):,} samples a board; " if sizes else ""
        numbers = sum(s.type.bytes // s.type.dtype.size for s in self.slots)
        return f"{self.who(virtual)}\n{shares}differences of {numbers:,} numbers as {self.settings.encoding}"

    @contextmanager
    def members(self, fresh: bool) -> Iterator[list[Members]]:
        """Twins, and connections to the other boards. `fresh`: boards forget their rounds. Raises AutodiffError if no
        board answers, or one cannot take part."""
        groups = list[Members]()
        with doing("preparing the boards"):
            train = {} if self.data is None else self.data.train
            rows = zip(self.parts, self.tests, strict=True)
            sets = [records(self.layout, train, *own) for own in rows]
            if self.twins:
                groups.append(self._twins(sets[: self.twins], fresh))
            lines = self.lines(self.sessions, sets[self.twins :], fresh)
        linked = LinkedBoards(lines, self.twins)
        try:
            with doing("connecting to the boards"):
                silent = linked.connect()
            for failure in silent:
                print(f"    {failure}; each round tries it again", flush=True)
            if lines and len(silent) == len(lines) and not groups:
                raise LinkError(f"no board answers: {silent[0].reason}")
            yield [*groups, linked] if lines else groups
        finally:
            linked.end()

    def _twins(self, sets: Sequence[bytes], fresh: bool) -> Members:
        mask = self.settings.mask
        seeds = seeds_in(self.out, fresh) if mask is not None and mask.noise else None
        if self.profile is None:
            return Twins(self.program, sets, seeds=seeds)
        twins = Twins(self.program, sets, seeds=seeds, payload=self.profile.payload)
        return VirtualTime(twins, self.profile, self.args.seed)

    def _parts(self) -> list[Any]:
        """The samples of each twin and emulated board; in rows where the model takes only whole batches, as a record
        of its samples.bin is then a batch."""
        boards = self.twins + len(self.emulated)
        if self.data is None or not boards:
            return []
        label = self._label()
        labels = None if label is None else self.data.train[label]
        (gateway, gateways), seed = self.args.share, self.args.seed
        own = split(len(self.data), gateways, seed)[gateway]  # each gateway may have another number of boards
        labels = None if labels is None else labels[own]
        parts = split(len(own), boards, seed + gateway, labels, self.args.alpha or 0.0)
        found = [own[part] for part in parts]
        if entry(self.program, "train_step").takes_n:
            return found
        (size,), least = step_sizes(self.program), min(map(len, found))
        if least < size:
            more = ", or a larger --alpha" if self.args.alpha else ""
            raise DataError(
                f"the model takes {size} samples a step, and a board has {least} of {len(own):,}: name fewer boards"
                f"{more}"
            )
        return [batches(part, size, (seed, k)) for k, part in enumerate(found)]

    def _label(self) -> str | None:
        """The target that has one class for each sample."""
        found = label_and_scores(self.layout)
        return found[0].name if found is not None and len(found[0].type.shape) == 1 else None

    def _settings(self) -> RoundSettings:
        args = self.args
        if args.mu > 0 and self.lr is None:
            raise DataError("--mu needs a learning rate, which the model's schedule computes; leave it out")
        Encoding.of(args.delta)
        if args.evaluate is not None and compared_classes(self.layout) is None:
            raise DataError(
                "--evaluate compares labels with float scores of classes, which the model does not have; leave it out"
            )
        if args.batch is not None:
            check_batch(step_sizes(self.program), args.batch)
        n = min(args.batch or 0, self.layout.records)
        LocalWork(0, self.lr, n=n, mu=args.mu)  # raises ShapeError
        passes = max((-(-len(part) // (n or self.layout.records)) for part in self.parts), default=1)
        for option, steps in (("--steps", args.steps or 0), ("--epochs", (args.epochs or 0) * passes)):
            if steps > MOST_STEPS:
                raise DataError(
                    f"{option}: a board makes at most {MOST_STEPS:,} local steps in a round, not {steps:,}"
                )
        return RoundSettings(
            lr=self.lr,
            steps=args.steps or 0,
            epochs=0 if args.steps else args.epochs or 1,
            n=n,
            mu=args.mu,
            seed=args.seed,
            per_round=args.per_round or 0,
            encoding=args.delta,
            local_buffers=args.local_buffers,
            mask=clip_and_noise_of(self.program, args.clip, args.noise, args.local_buffers),
            evaluate=args.evaluate is not None,
        )


def _profile(args: argparse.Namespace) -> Profile | None:
    """The virtual boards of the options, if they name any."""
    if args.profile is None:
        if args.conditions:
            raise DataError("--conditions describes virtual boards: name these boards with --profile")
        return None
    return read_profile(args.profile, args.conditions, lambda kind: Session(args.model, kind, args.name))


def _number_of_twins(args: argparse.Namespace, profile: Profile | None) -> int:
    if profile is None:
        return number_of_twins(args, TWINS)
    virtual = len(profile.boards)
    if args.boards not in (None, virtual):
        raise DataError(f"--boards {args.boards:,}: --profile has {virtual:,}; leave one of them out")
    return virtual


def _described(profile: Profile) -> str:
    """`60 x stm32 (1.05 ms a step)`, for each kind."""
    return ", ".join(
        f"{n:,} x {kind} ({_time(profile.kinds[kind].step or 0.0)} a step)"
        for kind, n in Counter(profile.boards).items()
    )


def _time(seconds: float) -> str:
    return f"{seconds:.4g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
