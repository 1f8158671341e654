"""Override which parameters of a model file train: for a search that runs the file again with each choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..ir.graph import Channels
from .parameter import Parameter


@dataclass
class Selection:
    """channels: the parameters that train, by name, with the channels that do, None for all; None: all parameters
    train. reached: the names of the parameters for which this has been decided."""

    channels: Mapping[str, Channels | None] | None
    reached: set[str] = field(default_factory=set)

    def apply(self, name: str, parameter: Parameter) -> None:
        """Let a parameter train, or not."""
        chosen = self.channels is None or name in self.channels
        parameter.requires_grad = chosen
        parameter.channels = self.channels[name] if chosen and self.channels is not None else None
        self.reached.add(name)


current: list[Selection] = []  # the innermost last


@contextmanager
def training_only(channels: Mapping[str, Channels | None] | None) -> Iterator[Selection]:
    """Networks that are called in the block train only these parameters."""
    current.append(Selection(channels))
    try:
        yield current[-1]
    finally:
        current.pop()
