"""`autodiff-gen fleet`: rounds by federated averaging, or by a strategy of Flower in this process."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ..device.train_command import INTERRUPTED
from ..errors import ToolError, pip_install
from ..progress import doing
from .board_group import Members
from .folder import held
from .gateway import Gateway
from .linked import LinkedBoards
from .options import FLOWER
from .progress import RoundProgress
from .results import Results
from .rounds import Heard, RoundResult, Weights, run_round

ROUNDS = 3

OneRound = Callable[[Sequence[Members], int, Weights, Heard], RoundResult]  # by number and weights before it


def rounds(args: argparse.Namespace) -> int:
    """Run the rounds; returns the exit code: 0 at the end, 130 after Ctrl-C."""
    gateway = Gateway(args)
    return run_rounds(gateway, _server(gateway), gateway.heading())


def run_rounds(gateway: Gateway, one_round: OneRound, heading: str) -> int:
    """Make rounds by `one_round`, after the last one in the folder; returns the exit code."""
    with held(gateway.out):
        return _run(gateway, one_round, heading)


def _server(gateway: Gateway) -> OneRound:
    """The function that makes a round: a strategy of Flower, or federated averaging."""
    args = gateway.args
    if args.server != FLOWER and args.strategy is None and args.secagg is None:
        return lambda members, number, weights, heard: run_round(
            members, gateway.slots, gateway.settings, number, weights, heard
        )
    try:
        from .flower.simulation import Simulation
    except ImportError:
        given = {"--strategy": args.strategy, "--secagg": args.secagg, "--server flower": args.server}
        option = next(name for name, value in given.items() if value is not None)
        raise ToolError(
            f"{option} needs Flower 1.42, which is not installed: use ./scons fleet, which has it in "
            f".venv-fleet, or run: {pip_install('flwr')}"
        ) from None
    return Simulation(
        "FedAvg" if args.strategy is None else args.strategy,
        gateway.boards,
        args.per_node or 0,
        gateway.program,
        gateway.settings,
        gateway.out,
        args.secagg,
        [len(part) for part in gateway.parts],
    ).round


def _run(gateway: Gateway, one_round: OneRound, heading: str) -> int:
    args, settings, trainer = gateway.args, gateway.settings, gateway.session.trainer()
    last = args.rounds or ROUNDS
    results = Results(gateway.out, gateway.program, trainer, gateway.data)
    done = results.begin(args.fresh)
    if done >= last:
        print(
            f"nothing to do: {gateway.out} has round {done} of {last}; --rounds {done + 1} makes one more, "
            "--fresh restarts"
        )
        return 0
    names = {s.name for s in gateway.slots}
    weights = {name: array for name, array in trainer.state_dict().items() if name in names}
    print(heading, flush=True)
    if done:
        print(f"continues after round {done}", flush=True)
    with ExitStack() as stack:
        members = stack.enter_context(gateway.members(fresh=done == 0))
        results.restore(members, settings.local_buffers)
        results.open(args.log, args.tensorboard, stack)
        for number in range(done + 1, last + 1):
            chosen = len(settings.chosen(number, sum(map(len, members))))
            try:
                with doing(f"round {number} of {last}"):
                    result = one_round(members, number, weights, RoundProgress(chosen, last - number))
            except KeyboardInterrupt:
                print(f"stopped in round {number}; the same command repeats it")
                return INTERRUPTED
            weights = result.weights
            results.keep(result, members, settings.lr)
            if number == done + 1:
                for line in (x for m in members if isinstance(m, LinkedBoards) for x in m.wear()):
                    print(line, flush=True)
    print(f"the weights of round {last} are {results.file(last)}")
    return 0
