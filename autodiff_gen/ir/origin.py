"""Where a node comes from: the module, the phase of training and the call of a function in which it is created, and the
labels that layers, losses and differentiation give its results. Names, headings and comments in generated code are made
from it; the computation does not depend on it.

A node keeps its origin when it is rewritten, so a value shares it with its replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

FORWARD, LOSS, BACKWARD, UPDATE = "forward", "loss", "backward", "update"
OPTIMIZER = "optimizer"  # the scope of nodes that the updates of all parameters share
OUTPUT = "out"  # the role of a module's result


@dataclass(frozen=True)
class Label:
    """The meaning of a value: `role` in the module `scope`, or the gradient or a copy of another value."""

    role: str = ""
    scope: str = ""
    gradient_of: Any = None
    copy_of: Any = None


@dataclass(frozen=True, eq=False)
class FunctionCall:
    """One call of a function of the library, such as `batch_norm`. within: the call that it is a part of; given: the
    arguments by the names of the function's parameters, other than defaults; empty where they are not known;
    positional: the parameters whose arguments need no names."""

    function: str
    within: FunctionCall | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    positional: Sequence[str] = ()

    def contains(self, other: FunctionCall | None) -> bool:
        """Whether another call is this one or a part of it."""
        while other is not None and other is not self:
            other = other.within
        return other is self


@dataclass(eq=False, slots=True)
class Origin:
    """scope: the path of the layer to which the node belongs, as state_dict writes it; labels: the labels of single
    results; module: the path of the module that creates the node, which may be around that layer; recomputed: the node
    repeats a computation of the forward pass in the backward pass; strip: for a node that computes a part of a value,
    the region that is computed in strips and the number of the strip in it; call: the innermost call of a function that
    creates the node, or whose gradient the node computes; result_of: the call that returns the first result of the
    node."""

    scope: str = ""
    phase: str = FORWARD
    labels: dict[int, Label] = field(default_factory=dict)
    module: str = ""
    recomputed: bool = False
    strip: tuple[int, int] | None = None
    call: FunctionCall | None = None
    result_of: FunctionCall | None = None


def is_after_loss(origin: Origin) -> bool:
    """Whether a node belongs to the backward pass or to an update."""
    return origin.phase in (BACKWARD, UPDATE)


@dataclass(slots=True)
class Building:
    """The module, phase and call of nodes that are created now; paths: of the modules in the outermost one, by
    identity."""

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
        parameters = signature(f).parameters
        positional = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]

        @wraps(f)
        def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            given: dict[str, Any] = {**dict(zip(positional, args, strict=False)), **kwargs}
            known = len(args) <= len(positional) and given.keys() <= parameters.keys()
            told = {k: v for k, v in given.items() if not _equal(v, parameters[k].default)} if known else {}
            call = FunctionCall(function, current().call, told, positional)
            with building(call=call):
                result = f(*args, **kwargs)
            origin = result.base.node.origin if hasattr(result, "base") else None
            if origin is not None and call.contains(origin.call):
                origin.result_of = call
            return result

        return called

    return wrap


def _equal(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, bool | int | float | str | tuple) and value == default)
