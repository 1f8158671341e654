"""`bench`: networks on cores, with all stages of the pipeline and without some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..errors import ToolError
from ..lowering import pipeline
from ..model.loader import find_model
from ..targets.schema import near
from .stage_tables import StageRow
from .stage_trials import Core, Trial, TrialNetwork, Trials

ALL = "all"


def left_out_sets(words: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The sets of stages that are left out, each once; ("all",) means one set for each stage. Raises ToolError."""
    known = pipeline.names()
    found: list[tuple[str, ...]] = []
    for names in words:
        if names == (ALL,):
            found += [(name,) for name in known]
            continue
        unknown = next((name for name in names if name not in known), None)
        if unknown is not None:
            raise ToolError(f"--without: unknown stage {unknown!r}{near(unknown, known)}")
        found.append(tuple(sorted(names, key=known.index)))
    return list(dict.fromkeys(found))


def chosen_cores(names: Sequence[str] | None, known: Sequence[Core]) -> list[Core]:
    """The cores with these names, or all cores without names. Raises ToolError."""
    by_name = {core.name: core for core in known}
    unknown = next((name for name in names or () if name not in by_name), None)
    if unknown is not None:
        raise ToolError(f"--core: unknown core {unknown!r}; cores: {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(names or by_name)]


def measured(
    networks: Sequence[TrialNetwork],
    cores: Sequence[Core],
    sets: Sequence[tuple[str, ...]],
    results: Path,
    say: Callable[[str], None],
) -> tuple[list[tuple[str, Core, Trial]], list[StageRow]]:
    """The trial of each network on each core with all stages, and the rows without each set. `say` is called with a
    line for each result. Raises AutodiffError."""
    for network in networks:
        find_model(network.name)
    bases: list[tuple[str, Core, Trial]] = []
    rows: list[StageRow] = []
    for network in networks:
        for core in cores:
            base, *others = _trials(Trials(network, core, results), sets, say)
            bases.append((network.title, core, base))
            rows += [StageRow(network.title, core, base, trial) for trial in others]
    return bases, rows


def _trials(trials: Trials, sets: Sequence[tuple[str, ...]], say: Callable[[str], None]) -> Iterator[Trial]:
    """The trials of a network on a core; `say` is called with a line for each."""
    base: Trial | None = None
    for trial in trials.each(sets):
        if base is None:
            base = trial
            say(f"{trials.network.title} {trials.core.name}: {trial.cost.line}")
        else:
            say(StageRow(trials.network.title, trials.core, base, trial).line())
        yield trial
