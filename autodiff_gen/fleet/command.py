"""`autodiff-gen fleet`: rounds with twins on the host and boards in emulators, and what they print and save."""

from __future__ import annotations

import argparse
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..codegen.link_layout import compared_classes, label_and_scores, link_layout
from ..device.dataset import Dataset, load_dataset
from ..device.differences import Encoding
from ..device.errors import LinkError
from ..device.recording_windows import Windows
from ..device.rounds import shared_slots
from ..device.session import Session
from ..errors import DataError, ToolError, counted, pip_install
from ..progress import doing
from ..targets.build_commands import build_folder
from .conditions import Profile, read_profile
from .emulated import emulated_lines
from .folder import held
from .linked import LinkedBoards
from .mask import mask_of
from .members import HostTwins, Members
from .nvflare import EtaDevice
from .options import FLOWER
from .ports import port_lines
from .progress import Progress
from .records import records
from .results import Results
from .rounds import Plan, Result, Weights, run_round
from .split import held_out, split
from .twins import Twins
from .virtual import VirtualTime

if TYPE_CHECKING:
    from .flower.simulation import Simulation

INTERRUPTED = 130
ROUNDS = 3
TWINS = 10  # without --boards, --emulated and --port


def fleet(args: argparse.Namespace) -> int:
    """Run the rounds; returns the exit code: 0 at the end, 130 after Ctrl-C."""
    return Run(args).run()


class Run:
    """A run of the command: the model, the data of each board, and the round after which a stopped run continues."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.rounds = args, args.rounds or ROUNDS
        self.session = Session(args.model, "host", args.name)
        self.program, self.trainer = self.session.program, self.session.trainer()
        self.kinds = [kind for kind, number in args.emulated.items() for _ in range(number)]
        self.profile = self._profile()
        self.twins = self._number_of_twins()
        self.sessions = {kind: self._of(kind) for kind in dict.fromkeys((*self.kinds, *args.port.values()))}
        self.layout = link_layout(self.program)
        self.data = self._data()
        held = [held_out(p, args.evaluate or 0.0, (args.seed, k)) for k, p in enumerate(self._parts())]
        self.parts, self.tests = [train for train, _ in held], [test for _, test in held]
        self.plan = self._plan()
        self.slots = shared_slots(self.program, self.plan.local_buffers)
        self.out = args.out or Path(build_folder("fleet", self.program.name, {}))
        self.simulation = self._simulation()

    def run(self) -> int:
        with held(self.out):
            return self._run() if self.args.server in (None, FLOWER) else self._as_device()

    def _run(self) -> int:
        results = Results(self.out, self.program, self.trainer, self.data)
        done = results.begin(self.args.fresh)
        if done >= self.rounds:
            print(
                f"nothing to do: {self.out} has round {done} of {self.rounds}; --rounds {done + 1} makes one more, "
                "--fresh restarts"
            )
            return 0
        names = {s.name for s in self.slots}
        weights = {name: array for name, array in self.trainer.state_dict().items() if name in names}
        print(self.heading(), flush=True)
        if done:
            print(f"continues after round {done}", flush=True)
        with ExitStack() as stack:
            members = stack.enter_context(self.members(fresh=done == 0))
            results.restore(members, self.plan.local_buffers)
            results.open(self.args.log, self.args.tensorboard, stack)
            for number in range(done + 1, self.rounds + 1):
                chosen = len(self.plan.chosen(number, sum(map(len, members))))
                try:
                    with doing(f"round {number} of {self.rounds}"):
                        progress = Progress(chosen, self.rounds - number)
                        result = self.round(members, number, weights, progress)
                except KeyboardInterrupt:
                    print(f"stopped in round {number}; the same command repeats it")
                    return INTERRUPTED
                weights = result.weights
                results.keep(result, members, self.plan.lr)
                if number == done + 1:
                    for line in (x for m in members if isinstance(m, LinkedBoards) for x in m.wear()):
                        print(line, flush=True)
        print(f"the weights of round {self.rounds} are {results.file(self.rounds)}")
        return 0

    def _as_device(self) -> int:
        """Do what a server of NVFlare asks for; it keeps the weights."""
        args, name = self.args, self.program.name
        print(self.heading(), flush=True)
        with self.members(fresh=args.fresh) as members:
            device = EtaDevice(
                args.server,
                args.job or name,
                args.device or f"{platform.node()}-{name}",
                members,
                self.program,
                self.plan,
                args.timeout,
            )
            try:
                for task in device.tasks():
                    print(task, flush=True)
            except KeyboardInterrupt:
                return INTERRUPTED
        print(f"{args.server} has no more tasks")
        return 0

    def round(self, members: Sequence[Members], number: int, weights: Weights, progress: Progress) -> Result:
        """By a strategy of Flower, or by federated averaging."""
        if self.simulation is not None:
            return self.simulation.round(members, number, weights, progress)
        return run_round(members, self.slots, self.plan, number, weights, progress)

    # The options

    def _of(self, kind: str) -> Session:
        return Session(self.args.model, kind, self.args.name)

    def _profile(self) -> Profile | None:
        args = self.args
        if args.profile is not None:
            return read_profile(args.profile, args.conditions, self._of)
        if args.conditions:
            raise DataError("--conditions describes virtual boards: name these boards with --profile")
        return None

    def _number_of_twins(self) -> int:
        given = self.args.boards
        if self.profile is None:
            return given if given is not None else 0 if self.kinds or self.args.port else TWINS
        virtual = len(self.profile.boards)
        if given not in (None, virtual):
            raise DataError(f"--boards {given:,}: --profile has {virtual:,}; leave one of them out")
        return virtual

    def _data(self) -> Dataset | None:
        """None if all boards have their own samples, and nothing is there to test with."""
        args, windows = self.args, Windows(self.args.window, self.args.stride)
        own = not self.twins and not self.kinds
        if own and args.data is None and not (self.session.path.parent / "data.py").exists():
            return None
        data = load_dataset(
            args.data, self.session.path, self.layout, args.columns, (), windows, args.classes
        )
        chosen = slice(args.samples)
        return replace(data, train={name: array[chosen] for name, array in data.train.items()})

    def _parts(self) -> list[Any]:
        """The samples of each twin and emulated board."""
        boards = self.twins + len(self.kinds)
        if self.data is None or not boards:
            return []
        label = self._label()
        labels = None if label is None else self.data.train[label]
        (gateway, gateways), seed = self.args.share, self.args.seed
        own = split(len(self.data), gateways, seed)[gateway]  # each gateway may have another number of boards
        labels = None if labels is None else labels[own]
        return [own[part] for part in split(len(own), boards, seed + gateway, labels, self.args.alpha or 0.0)]

    def _label(self) -> str | None:
        """The target that has one class for each sample."""
        found = label_and_scores(self.layout)
        return found[0].name if found is not None and len(found[0].type.shape) == 1 else None

    def _plan(self) -> Plan:
        args, lr = self.args, self.args.lr
        if lr is None:
            lr = self.program.default_lr  # None where a schedule computes it
        elif self.program.default_lr is None:
            raise DataError("--lr: the model's schedule computes the learning rate")
        if args.mu > 0 and lr is None:
            raise DataError("--mu needs a learning rate, which the model's schedule computes; leave it out")
        Encoding.of(args.delta)
        if args.evaluate is not None and compared_classes(self.layout) is None:
            raise DataError(
                "--evaluate compares labels with float scores of classes, which the model does not have; leave it out"
            )
        if args.batch is not None and args.batch > self.program.batch:
            raise DataError(
                f"--batch {args.batch}: the model takes at most {self.program.batch} samples a step"
            )
        return Plan(
            lr=lr,
            steps=args.steps or 0,
            epochs=0 if args.steps else args.epochs or 1,
            n=args.batch or 0,
            mu=args.mu,
            seed=args.seed,
            per_round=args.per_round or 0,
            encoding=args.delta,
            local_buffers=args.local_buffers,
            mask=mask_of(self.program, args.clip, args.noise, args.local_buffers),
            evaluate=args.evaluate is not None,
        )

    def _simulation(self) -> Simulation | None:
        """The strategy of Flower that directs the rounds, if one does."""
        args = self.args
        if args.server != FLOWER and args.strategy is None:
            return None
        try:
            from .flower.simulation import Simulation
        except ImportError:
            raise ToolError(
                "--server flower needs Flower 1.42, which is not installed: use ./scons fleet, which has it in "
                f".venv-fleet, or run: {pip_install('flwr')}"
            ) from None
        boards = self.twins + len(self.kinds) + len(args.port)
        strategy = args.strategy or "FedAvg"
        return Simulation(strategy, boards, args.per_node or 0, self.program, self.plan, self.out)

    def heading(self) -> str:
        who = [f"{counted(self.twins, 'twin')} on the host"] if self.twins else []
        if self.profile is not None:
            who[0] += " as " + ", ".join(
                f"{n:,} x {kind} ({_time(self.profile.kinds[kind].step or 0.0)} a step)"
                for kind, n in Counter(self.profile.boards).items()
            )
        who += [f"{n} x {kind} emulated" for kind, n in Counter(self.kinds).items()]
        who += [f"{n} x {kind} at a port" for kind, n in Counter(self.args.port.values()).items()]
        text = f"{self.program.name}: {', '.join(who)}"
        if self.data is not None:
            text += f"; {counted(len(self.data), 'sample')} from {self.data.source}"
        sizes = [len(part) for part in self.parts]
        shares = f"{min(sizes):,} to {max(sizes):,} samples a board; " if sizes else ""
        numbers = sum(s.type.bytes // s.type.dtype.size for s in self.slots)
        return f"{text}\n{shares}differences of {numbers:,} numbers as {self.plan.encoding}"

    # The boards

    @contextmanager
    def members(self, fresh: bool) -> Iterator[list[Members]]:
        args, groups = self.args, list[Members]()
        with doing("preparing the boards"):
            train, rows = (
                {} if self.data is None else self.data.train,
                zip(self.parts, self.tests, strict=True),
            )
            sets = [records(self.layout, train, *own) for own in rows]
            if self.twins:
                twins = HostTwins(Twins(self.program, sets[: self.twins]))
                groups.append(twins if self.profile is None else VirtualTime(twins, self.profile, args.seed))
            emulated = [self.sessions[kind] for kind in self.kinds]
            lines = emulated_lines(emulated, sets[self.twins :], self.out / "boards", fresh, args.timeout)
            lines += port_lines(args.port, self.sessions, args.baud, args.timeout, fresh)
        linked = LinkedBoards(lines, self.twins)
        try:
            with doing("connecting to the boards"):
                silent = linked.connect()
            for failure in silent:
                print(
                    f"    board {failure.board}: {failure.reason}; each round tries it again",
                    flush=True,
                )
            if lines and len(silent) == len(lines) and not groups:
                raise LinkError(f"no board answers: {silent[0].reason}")
            yield [*groups, linked] if lines else groups
        finally:
            linked.end()


def _time(seconds: float) -> str:
    return f"{seconds:.4g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
