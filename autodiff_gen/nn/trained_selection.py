"""A choice of the parameters that train, from outside of a model file: a search runs the file with each choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..ir.graph import Channels
from .parameter import Parameter


@dataclass
class TrainedSelection:
    """channels: name of a parameter that trains -> the channels that train (None: all channels); None instead of the
    mapping: all parameters train. reached: the names of the parameters to which the choice was applied."""

    channels: Mapping[str, Channels | None] | None
    reached: set[str] = field(default_factory=set)

    def apply(self, name: str, parameter: Parameter) -> None:
        """Set whether a parameter trains, and which of its channels."""
        chosen = self.channels is None or name in self.channels
        parameter.requires_grad = chosen
        parameter.channels = self.channels[name] if chosen and self.channels is not None else None
        self.reached.add(name)


current: list[TrainedSelection] = []  # the innermost last


@contextmanager
def training_only(channels: Mapping[str, Channels | None] | None) -> Iterator[TrainedSelection]:
    """Networks that are called in the block train only these parameters."""
    current.append(TrainedSelection(channels))
    try:
        yield current[-1]
    finally:
        current.pop()
