"""Numeric argument types for argparse."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    number = count(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}")
    return int(text)


def ram(text: str) -> int | dict[str, int]:
    """Bytes of all regions of memory, 96K, or of each that is used: sram=96K,ccm=64K."""
    if "=" not in text:
        return memory_size(text)
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = part.partition("=")
        if not name or name in sizes:
            raise argparse.ArgumentTypeError(
                f"expected each region once, such as sram=96K,ccm=64K, got {text!r}"
            )
        sizes[name] = memory_size(size)
    return sizes


def memory_size(text: str) -> int:
    """Bytes: 98304, or 96K, or 1M."""
    unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:].upper(), 1)
    digits = text if unit == 1 else text[:-1]
    if not (digits.isascii() and digits.isdigit()) or int(digits) == 0:
        raise argparse.ArgumentTypeError(f"expected bytes, such as 98304 or 96K, got {text!r}")
    return int(digits) * unit


def columns(text: str) -> dict[str, list[str]]:
    """`x=ax,ay,az;label=activity` as column names by array."""
    made = {}
    for part in text.split(";"):
        name, equals, names = part.partition("=")
        if not equals or not names:
            raise argparse.ArgumentTypeError(f"expected NAME=COLUMN,COLUMN;NAME=COLUMN, got {text!r}")
        made[name.strip()] = [n.strip() for n in names.split(",")]
    return made


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


def seconds(text: str) -> float:
    number = finite(text)
    if number <= 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return number
