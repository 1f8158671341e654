"""Options of `autodiff-gen fleet` that have no effect together with other options, or without them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ..errors import DataError

FLOWER = "flower"  # a name for --server


@dataclass(frozen=True)
class Rule:
    """Where `applies` is true, `options` have no effect. The text of each option says why, or which option to use."""

    applies: Callable[[argparse.Namespace], bool]
    place: str
    options: Mapping[str, str]


def _at_ports(args: argparse.Namespace) -> bool:
    return bool(args.port) and not (args.boards or args.emulated or args.profile)


def _with_nvflare(args: argparse.Namespace) -> bool:
    return args.server not in (None, FLOWER)


RULES = (
    Rule(
        lambda args: bool(args.synchronous),
        "with --synchronous",
        {
            "rounds": "say --epochs or --steps",
            "per_round": "all ranks make every step",
            "mu": "all ranks have the same weights",
            "delta": "gradients are sent as float32",
            "clip": "gradients are sent as they are",
            "noise": "gradients are sent as they are",
            "evaluate": "the command measures the accuracy, on the test samples of the data",
            "local_buffers": "running statistics are averaged at every step",
            "alpha": "the samples of each step are divided among the ranks alike",
            "profile": "virtual time counts rounds",
            "conditions": "virtual time counts rounds",
            "server": "the command adds up the gradients",
            "strategy": "the model has its optimizer",
            "secagg": "gradients are sent as they are",
            "per_node": "each board is a rank",
            "job": "the command adds up the gradients",
            "device": "the command adds up the gradients",
        },
    ),
    Rule(
        _with_nvflare,
        "with NVFlare",
        {
            "rounds": "its server says how many rounds there are",
            "per_round": "its server chooses devices, and all boards of a device train",
            "strategy": "its server averages; leave out --server, or --strategy",
            "secagg": "its server averages; leave out --server, or --secagg",
            "evaluate": "its server asks for no evaluation",
            "profile": "its server has its own clock",
            "conditions": "its server has its own clock",
            "log": "its server has the losses",
            "tensorboard": "its server has the losses",
        },
    ),
    Rule(
        lambda args: not _with_nvflare(args),
        "without NVFlare",
        dict.fromkeys(("job", "device"), "add --server http://HOST:PORT"),
    ),
    Rule(
        lambda args: args.server != FLOWER and args.strategy is None and args.secagg is None,
        "without Flower",
        {"per_node": "add --server flower or --strategy"},
    ),
    Rule(
        _at_ports,
        "with boards at ports only",
        dict.fromkeys(("alpha", "samples"), "they have their own samples"),
    ),
    Rule(
        lambda args: _at_ports(args) and bool(args.evaluate),
        "with boards at ports only",
        {"evaluate": "its share is of the samples of other boards; write --evaluate 0"},
    ),
    Rule(
        lambda args: not args.port,
        "without --port",
        {"board": "add --port PORT, or say --emulated BOARD=1", "baud": "add --port PORT"},
    ),
)


def check_options(args: argparse.Namespace, given: Collection[str]) -> None:
    """Raises DataError for the first of the options `given` that has no effect."""
    for rule in RULES:
        for name, instead in rule.options.items():
            if name in given and rule.applies(args):
                option = "--" + name.replace("_", "-")
                raise DataError(f"{option} has no effect {rule.place}: {instead}")
