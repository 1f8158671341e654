"""Stages that a measurement leaves out of the pipeline, and the stages that change an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from ..ir.module import Module
from ..passes.context import Context


@dataclass(frozen=True)
class Trial:
    """left_out: the names of stages that return their module unchanged; effective: the names of stages that have
    changed an entry so far."""

    left_out: frozenset[str] = frozenset()
    effective: set[str] = field(default_factory=set)


_trial: ContextVar[Trial | None] = ContextVar("trial", default=None)


@contextmanager
def without(stages: Sequence[str]) -> Iterator[Trial]:
    """Models that are built and compiled inside do not run these stages. If a stage changes no entry, the compiler's
    output is the same without it."""
    trial = Trial(frozenset(stages))
    token = _trial.set(trial)
    try:
        yield trial
    finally:
        _trial.reset(token)


def result(
    stage: Callable[[Module[Any], Context], Module[Any]], module: Module[Any], context: Context
) -> Module[Any]:
    """The result of a stage of the pipeline, or the module itself if the trial leaves the stage out."""
    trial = _trial.get()
    if trial is None:
        return stage(module, context)
    made = module if stage.__name__ in trial.left_out else stage(module, context)
    pairs = zip_longest(made.entries, module.entries)
    if made.stored != module.stored or any(new is not old for new, old in pairs):
        trial.effective.add(stage.__name__)
    return made
