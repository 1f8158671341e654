"""`fleet`: federated training of many boards."""

from __future__ import annotations

import argparse
import re
from functools import partial
from pathlib import Path

from ..targets.schema import DEFAULT_BOARD
from .arguments import (
    Command,
    Group,
    batch_argument,
    baud_argument,
    boards,
    by_name,
    count,
    data_arguments,
    finite,
    log_arguments,
    lr_argument,
    model_argument,
    number_argument,
    rate,
    samples_argument,
    seconds,
    share,
    timeout_argument,
)


def add_commands(command: Command) -> None:
    """Add `fleet`."""
    fleet = command(
        "fleet",
        "Federated training: many boards train one model, each on its own samples, and only differences of weights are "
        "sent. Boards are twins in this process, run in emulators, or are at ports.",
    )
    model_argument(fleet)
    fleet.add_argument("--name", help="the name of the program (default: the name of the model file)")
    _boards(fleet.add_argument_group("the boards"))
    _round(fleet.add_argument_group("a round"))
    _privacy(fleet.add_argument_group("privacy"))
    _virtual_time(fleet.add_argument_group("virtual time"))
    _server(fleet.add_argument_group("a server: Flower or NVFlare Edge"))
    _samples(fleet.add_argument_group("the samples"))
    _results(fleet.add_argument_group("the results"))
    fleet.set_defaults(run=partial(_fleet, fleet), share=(0, 1))  # which of several gateways has the samples


def _boards(group: Group) -> None:
    number_argument(group, "--boards", "twins on the host (default: 10, or none with --emulated or --port)")
    group.add_argument(
        "--emulated",
        metavar="BOARD=N,...",
        type=boards,
        default={},
        help="boards in emulators, such as stm32=2,mps2_an385=1",
    )
    group.add_argument(
        "--port",
        metavar="PORT,...",
        type=ports,
        default={},
        help="boards at these ports, given as for `train --port`; each board has its own samples. stm32=/dev/ttyACM0 "
        "names the kind of board, if it is not the board of --board",
    )
    group.add_argument(
        "--board", metavar="B", default=DEFAULT_BOARD, help="the boards at --port (default: %(default)s)"
    )
    baud_argument(group)
    timeout_argument(group, ", or a server of NVFlare, or its job, as absent")


def _round(group: Group) -> None:
    number_argument(group, "--rounds", "rounds in total (default: 3)")
    group.add_argument(
        "--synchronous",
        action="store_true",
        help="no rounds: all boards make each step together, by the sum of their gradients, as one board would with "
        "all samples in one batch",
    )
    number_argument(group, "--per-round", "boards that are drawn for a round (default: all)")
    local = group.add_mutually_exclusive_group()
    number_argument(local, "--steps", "local steps of a round, or with --synchronous steps of the whole run")
    number_argument(
        local,
        "--epochs",
        "passes over a board's own samples in a round, or with --synchronous over the data set (default: 1)",
    )
    batch_argument(group, "of a local step")
    lr_argument(group)
    group.add_argument(
        "--mu", metavar="X", type=rate, default=0.0, help="pull to the weights of the round's start (FedProx)"
    )
    group.add_argument(
        "--delta",
        metavar="HOW",
        default="f32",
        help="how differences are sent: f32, s8, top0.1 (the largest tenth), or top0.1:s8 (the largest tenth as bytes) "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--evaluate",
        metavar="SHARE",
        type=share,
        help="boards test the weights of each round on this share of their samples, and train on the others; 0: boards "
        "test on all samples that they train on",
    )
    group.add_argument("--local-buffers", action="store_true", help="running statistics stay on each board")
    group.add_argument(
        "--seed",
        metavar="N",
        type=count,
        default=0,
        help="the seed that divides samples, draws boards and makes virtual time (default: %(default)s)",
    )


def _privacy(group: Group) -> None:
    group.add_argument(
        "--clip", metavar="C", type=seconds, help="the largest L2 norm of a difference (default: any)"
    )
    group.add_argument(
        "--noise",
        metavar="X",
        type=rate,
        default=0.0,
        help="boards add normal noise of standard deviation X * C to each number (DP-FedAvg)",
    )


def _virtual_time(group: Group) -> None:
    group.add_argument(
        "--profile",
        metavar="BOARD=N,...",
        help="twins as virtual boards, such as stm32=700,mps2_an385=300, in virtual time; or a .toml file",
    )
    group.add_argument(
        "--conditions",
        metavar="NAME=X,...",
        type=conditions,
        default={},
        help="conditions of virtual boards: rate (bytes/s of the line), latency (s), loss (share of frames), "
        "vanish, late (how likely), delay (s), payload (bytes of a message), deadline (s of a round), step (s), "
        "instructions (of a step)",
    )


def _server(group: Group) -> None:
    group.add_argument(
        "--server",
        metavar="SERVER",
        type=server,
        help="who averages: flower, in this process; or http://HOST:PORT, the routing proxy of NVFlare Edge (default: "
        "this command, by federated averaging)",
    )
    group.add_argument(
        "--strategy",
        metavar="NAME[,KEY=VALUE,...]",
        help="a strategy of Flower and its options, such as FedAdam,eta=0.03 (default with --server flower: FedAvg)",
    )
    group.add_argument(
        "--secagg",
        metavar="KEY=VALUE,...",
        nargs="?",
        const="",
        help="the server learns only the mean of the clients, by secure aggregation (SecAgg+ of Flower), with its "
        "options, such as num_shares=5; each board is a client unless --per-node says otherwise",
    )
    number_argument(
        group,
        "--per-node",
        "boards that are one client of Flower (default: all, or 1 where a strategy compares clients)",
    )
    group.add_argument("--job", metavar="NAME", help="the job of NVFlare (default: the program's name)")
    group.add_argument(
        "--device",
        metavar="NAME",
        help="the name of this device in NVFlare (default: made of host and program)",
    )


def _samples(group: Group) -> None:
    data_arguments(group)
    samples_argument(group)
    group.add_argument(
        "--alpha",
        metavar="X",
        type=seconds,
        help="divide each class among the boards by Dirichlet(X): the smaller, the fewer classes a board has "
        "(default: all boards alike)",
    )


def _results(group: Group) -> None:
    group.add_argument(
        "--out", metavar="DIR", type=Path, help="weights of each round or epoch (default: build/fleet/NAME)"
    )
    group.add_argument(
        "--fresh",
        action="store_true",
        help="begin with the model's weights, not with the last round or step in --out; boards forget their rounds",
    )
    log_arguments(group, "round or epoch")


def conditions(text: str) -> dict[str, float]:
    """Numbers by name."""
    return by_name(
        text,
        finite,
        argparse.ArgumentTypeError(f"expected each name once, such as rate=11520,deadline=60, got {text!r}"),
    )


def server(text: str) -> str:
    """`flower`, or an address."""
    address = re.fullmatch(
        r"https?://(\[[0-9a-fA-F:.]+\]|[^/\s?#@:\[\]]+)(:(\d{1,5}))?(/[^\s?#]*)?", text, re.ASCII
    )
    if text != "flower" and (address is None or not 0 < int(address[3] or 1) < 1 << 16):
        raise argparse.ArgumentTypeError(f"expected flower or http://HOST:PORT, got {text!r}")
    return text


def ports(text: str) -> dict[str, str]:
    """Kinds of boards by port; "" for a port without a kind."""
    found: dict[str, str] = {}
    for part in text.split(","):
        kind, _, port = part.partition("=") if re.match(r"[\w./-]+=", part) else ("", "", part)
        if not port or port in found:
            raise argparse.ArgumentTypeError(
                f"expected each port once, such as /dev/ttyACM0,stm32=socket://host:4000, got {text!r}"
            )
        found[port] = kind
    return found


def name_kinds(args: argparse.Namespace) -> None:
    """Each port gets the kind of its board, --board unless it has one."""
    args.port = {port: kind or args.board for port, kind in args.port.items()}


def _fleet(parser: argparse.ArgumentParser, args: argparse.Namespace) -> int:
    from ..fleet.options import FLOWER, check_options

    check_options(args, [name for name, value in vars(args).items() if value != parser.get_default(name)])
    name_kinds(args)
    if args.synchronous:
        from ..fleet.synchronous_command import synchronous as run
    elif args.server in (None, FLOWER):
        from ..fleet.rounds_command import rounds as run
    else:
        from ..fleet.nvflare_command import tasks as run
    return run(args)
