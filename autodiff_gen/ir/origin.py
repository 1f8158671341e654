"""Where a node comes from: the module, the phase of training and the call of a function in which it is created, and
what layers, losses and differentiation say of its results. Names, headings and comments in generated code are made of
it; what is computed does not depend on it.

A node keeps its origin when it is rewritten, so a value shares it with what takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

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


@dataclass(frozen=True, eq=False)
class FunctionCall:
    """One call of a function of the library, such as `batch_norm`; within: the call that it is a part of."""

    function: str
    within: FunctionCall | None = None


@dataclass(eq=False, slots=True)
class Origin:
    """scope: the path of the layer to which the node belongs, as state_dict writes it; labels: what is known of single
    results; module: the path of the module that creates the node, which may be around that layer; again: the node
    computes in the backward pass what the forward pass has computed; strip: of a node that computes a part of a value,
    the region that is computed in strips and the number of the strip in it; call: the innermost call of a function that
    creates the node, or whose gradient the node computes."""

    scope: str = ""
    phase: str = FORWARD
    labels: dict[int, Label] = field(default_factory=dict)
    module: str = ""
    again: bool = False
    strip: tuple[int, int] | None = None
    call: FunctionCall | None = None


def is_late(origin: Origin) -> bool:
    """Whether a node belongs to the backward pass or to an update."""
    return origin.phase in (BACKWARD, UPDATE)


@dataclass(slots=True)
class Building:
    """What nodes that are created now belong to; paths: of the modules in the outermost one, by identity."""

    scope: str = ""
    phase: str = FORWARD
    paths: Mapping[int, str] | None = None
    call: FunctionCall | None = None


_current: ContextVar[Building] = ContextVar("building", default=Building())  # noqa: B039


def current() -> Building:
    return _current.get()


@contextmanager
def building(
    scope: str | None = None,
    phase: str | None = None,
    paths: Mapping[int, str] | None = None,
    call: FunctionCall | None = None,
) -> Iterator[Building]:
    """Nodes that are created inside belong to this module, phase and call, which may be changed on the way; None: as
    outside."""
    now = _current.get()
    inside = Building(
        now.scope if scope is None else scope,
        now.phase if phase is None else phase,
        now.paths if paths is None else paths,
        now.call if call is None else call,
    )
    token = _current.set(inside)
    try:
        yield inside
    finally:
        _current.reset(token)


def building_as(origin: Origin) -> AbstractContextManager[Building]:
    """Nodes that are created inside belong where a node of this origin belongs."""
    return building(origin.scope, origin.phase, call=origin.call)


_P = ParamSpec("_P")
_R = TypeVar("_R")


def named(function: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Nodes that the decorated function creates belong to a call of `function`."""

    def wrap(f: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(f)
        def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with building(call=FunctionCall(function, current().call)):
                return f(*args, **kwargs)

        return called

    return wrap
