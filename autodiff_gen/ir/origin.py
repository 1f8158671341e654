"""Where a node comes from: the module and the phase of training in which it is created, and what layers, losses and
differentiation say of its results. Names and headings in generated code are made of it; what is computed does not
depend on it.

A node keeps its origin when it is rewritten, so a value shares it with what takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

FORWARD, LOSS, BACKWARD, UPDATE = "forward", "loss", "backward", "update"
OPTIMIZER = "optimizer"  # the scope of what the updates of all parameters share
OUTPUT = "out"  # the role of what a module returns


@dataclass(frozen=True)
class Label:
    """What a value is: `role` in the module `scope`, or the gradient or a copy of another value."""

    role: str = ""
    scope: str = ""
    gradient_of: Any = None
    copy_of: Any = None


@dataclass(eq=False, slots=True)
class Origin:
    """scope: the path of the layer to which the node belongs, as state_dict writes it; labels: what is known of single
    results; module: the path of the module that creates the node, which may be around that layer; again: the node
    computes in the backward pass what the forward pass has computed; strip: of a node that computes a part of a value,
    the region that is computed in strips and the number of the strip in it."""

    scope: str = ""
    phase: str = FORWARD
    labels: dict[int, Label] = field(default_factory=dict)
    module: str = ""
    again: bool = False
    strip: tuple[int, int] | None = None


def is_late(origin: Origin) -> bool:
    """Whether a node belongs to the backward pass or to an update."""
    return origin.phase in (BACKWARD, UPDATE)


@dataclass(slots=True)
class Building:
    """What nodes that are created now belong to; paths: of the modules in the outermost one, by identity."""

    scope: str = ""
    phase: str = FORWARD
    paths: Mapping[int, str] | None = None


_current: ContextVar[Building] = ContextVar("building", default=Building())  # noqa: B039


def current() -> Building:
    return _current.get()


@contextmanager
def building(
    scope: str | None = None, phase: str | None = None, paths: Mapping[int, str] | None = None
) -> Iterator[Building]:
    """Nodes that are created inside belong to this module and phase, which may be changed on the way; None: as
    outside."""
    now = _current.get()
    inside = Building(
        now.scope if scope is None else scope,
        now.phase if phase is None else phase,
        now.paths if paths is None else paths,
    )
    token = _current.set(inside)
    try:
        yield inside
    finally:
        _current.reset(token)
