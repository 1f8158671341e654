"""Arguments that several commands have, and types of numbers for argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ..targets.schema import DEFAULT_BOARD

if TYPE_CHECKING:
    from ..bench.stage_trials import TrialNetwork
    from ..targets.board import BoardSpec

Number = TypeVar("Number", int, float)
Command: TypeAlias = Callable[
    [str, str], argparse.ArgumentParser
]  # makes the parser of a command: name, help
Group: TypeAlias = argparse._ActionsContainer  # a parser, or a group of its arguments


def positive(text: str) -> int:
    number = count(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected an integer, got {text!r}")
    return int(text)


def ram(text: str) -> int | dict[str, int]:
    """Bytes of all regions of memory, 96K, or of each region that is used: sram=96K,ccm=64K."""
    if "=" not in text:
        return memory_size(text)
    return by_name(
        text,
        memory_size,
        argparse.ArgumentTypeError(f"expected each region once, such as sram=96K,ccm=64K, got {text!r}"),
    )


def boards(text: str) -> dict[str, int]:
    """`stm32=2,mps2_an385` as numbers of boards by name; 1 without a number."""
    return by_name(
        text,
        positive,
        argparse.ArgumentTypeError(f"expected each board once, such as stm32=2,mps2_an385=1, got {text!r}"),
        default="1",
    )


def by_name(
    text: str, number: Callable[[str], Number], wrong: argparse.ArgumentTypeError, default: str = ""
) -> dict[str, Number]:
    """`a=1,b=2` as numbers by name. `number` reads one; raises `wrong` if a name or a number is missing, or a name is
    repeated. `default`: the number of a name without `=`."""
    found: dict[str, Number] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        value = value if equals else default
        if not name or not value or name in found:
            raise wrong
        try:
            found[name] = number(value)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{part}: {error}") from None
    return found


def memory_size(text: str) -> int:
    """Bytes: 98304, or 96K, or 1M."""
    unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:].upper(), 1)
    digits = text if unit == 1 else text[:-1]
    if not (digits.isascii() and digits.isdigit()) or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"expected bytes, such as 98304 or 96K, got {text!r}")
    return int(digits) * unit


def network(text: str) -> TrialNetwork:
    """`resnet8`, or `resnet8:480K`: a model, and its limit of RAM."""
    from ..bench.stage_trials import TrialNetwork

    name, colon, limit = text.rpartition(":")
    return TrialNetwork(name, memory_size(limit)) if colon else TrialNetwork(text)


def columns(text: str) -> dict[str, list[str]]:
    """`x=ax,ay,az;label=activity` as column names by array."""
    made = {}
    for part in text.split(";"):
        name, equals, names = part.partition("=")
        if not equals or not names:
            raise argparse.ArgumentTypeError(f"expected NAME=COLUMN,COLUMN;NAME=COLUMN, got {text!r}")
        made[name.strip()] = [n.strip() for n in names.split(",")]
    return made


def names(text: str) -> tuple[str, ...]:
    """`run,skip` as names, each once."""
    found = tuple(n.strip() for n in text.split(","))
    if not all(found) or len(set(found)) != len(found):
        raise argparse.ArgumentTypeError(f"expected each name once, such as run,skip, got {text!r}")
    return found


def finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None
    if not abs(number) <= 3.4e38:
        raise argparse.ArgumentTypeError(f"{text} is no finite float")
    return number


def rate(text: str) -> float:
    number = finite(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must be at least 0")
    return number


def share(text: str) -> float:
    number = rate(text)
    if number >= 1:
        raise argparse.ArgumentTypeError("must be at least 0 and less than 1")
    return number


def seconds(text: str) -> float:
    number = finite(text)
    if number <= 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return number


def force_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace any files: also files of others, and files that were changed after they were written",
    )


def model_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="the model: a file, an example's name, or a .pt2 or .onnx file"
    )


def number_argument(parser: Group, name: str, help: str, default: int | None = None) -> None:
    """An option that takes an integer of at least 1."""
    parser.add_argument(name, metavar="N", type=positive, default=default, help=help)


def batch_argument(parser: Group, step: str = "per step") -> None:
    number_argument(parser, "--batch", f"samples {step} (default: the model's batch)")


def samples_argument(parser: Group) -> None:
    number_argument(parser, "--samples", "use the first N samples only")


def lr_argument(parser: Group) -> None:
    parser.add_argument("--lr", metavar="X", type=rate, help="learning rate (default: the model's)")


def baud_argument(parser: Group) -> None:
    number_argument(parser, "--baud", "serial port speed (default: %(default)s)", default=115200)


def log_arguments(parser: Group, row: str) -> None:
    """`row`: the unit of a row, such as "step"."""
    parser.add_argument(
        "--log",
        metavar="FILE.csv",
        type=Path,
        help=f"write a row for every {row}; a resumed run appends to it",
    )
    parser.add_argument(
        "--tensorboard",
        metavar="DIR",
        type=Path,
        help="also write events for TensorBoard; needs the extra tensorboard",
    )


def timeout_argument(parser: Group, also: str = "") -> None:
    """`also`: what else the seconds are for."""
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=seconds,
        default=15.0,
        help=f"seconds until a board counts as silent{also} (default: %(default)s)",
    )


def data_arguments(parser: Group, default: str = "data.py in the model's folder", what: str = "") -> None:
    """Add --data and its forms. `what`: a text before the help of --data, such as "calibration data: "; `default`: the
    data without --data."""
    parser.add_argument(
        "--data",
        metavar="FILE",
        help=f"{what}.npz, .csv, a folder of .npy or .csv files, samples.bin, or .py with dataset(), as in "
        f"docs/data.md (default: {default})",
    )
    parser.add_argument(
        "--columns",
        metavar="MAP",
        type=columns,
        default={},
        help="the columns of a .csv for each array, such as 'x=ax,ay,az;label=activity'",
    )
    number_argument(
        parser, "--window", "rows of each window of a .csv recording (default: the rows of the model's input)"
    )
    number_argument(
        parser,
        "--stride",
        "rows between the starts of two windows (default: the rows of a window, so windows do not overlap)",
    )
    parser.add_argument(
        "--classes",
        metavar="LIST",
        type=names,
        default=(),
        help="names of the classes 0, 1, ..., with commas (default: the words of the data in alphabetical order)",
    )


def board_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--board",
        metavar="BOARD",
        default=DEFAULT_BOARD,
        help="a board's name, such as host, or a .toml file (default: %(default)s)",
    )
    parser.add_argument(
        "--trust-board",
        action="store_true",
        help="let the board's file name any program, option and path, as docs/boards.md explains",
    )


def target_arguments(parser: argparse.ArgumentParser) -> None:
    board_argument(parser)
    parser.add_argument("--name", help="name of the generated files and functions (default: the model's)")
    parser.add_argument(
        "--kernels", metavar="LIST", help="kernel backends by priority, with commas (default: the board's)"
    )
    parser.add_argument(
        "--ram",
        metavar="BYTES",
        type=ram,
        help="RAM budget of the trainer, such as 98304 or 96K, or a budget for each region of memory that it may use: "
        "sram=96K,ccm=64K (default: the board's RAM less the stack)",
    )


def board_and_kernels(args: argparse.Namespace) -> tuple[BoardSpec, list[str] | None]:
    """The board, and the command line's kernel backends; None for the backends of the board's profile."""
    from ..kernels import registry
    from ..targets import board

    kernels = None if args.kernels is None else registry.parse_list(args.kernels)
    return board.load(args.board, trusted=args.trust_board), kernels
