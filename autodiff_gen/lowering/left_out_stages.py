"""Stages that a measurement leaves out of the pipeline, and the stages that change an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from ..ir.module import IRModule
from ..passes.context import Context


@dataclass(frozen=True)
class LeftOut:
    """left_out: the names of stages that return their module unchanged; effective: the names of stages that have
    changed an entry so far."""

    left_out: frozenset[str] = frozenset()
    effective: set[str] = field(default_factory=set)


_left_out: ContextVar[LeftOut | None] = ContextVar("left_out", default=None)


@contextmanager
def without(stages: Sequence[str]) -> Iterator[LeftOut]:
    """Models that are built and compiled inside do not run these stages. If a stage changes no entry, the compiler's
    output is the same without it."""
    current = LeftOut(frozenset(stages))
    token = _left_out.set(current)
    try:
        yield current
    finally:
        _left_out.reset(token)


def result(
    stage: Callable[[IRModule[Any], Context], IRModule[Any]], module: IRModule[Any], context: Context
) -> IRModule[Any]:
    """The result of a stage of the pipeline, or the module itself if the stage is left out."""
    current = _left_out.get()
    if current is None:
        return stage(module, context)
    made = module if stage.__name__ in current.left_out else stage(module, context)
    pairs = zip_longest(made.entries, module.entries)
    if made.stored != module.stored or any(new is not old for new, old in pairs):
        current.effective.add(stage.__name__)
    return made
