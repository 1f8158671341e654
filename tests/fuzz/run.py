"""Read mutated files of all formats until a time is over: `./scons fuzz minutes=30 seed=7`.

minutes=N       how long; 10 if not given
cases=N         how many cases of each format, instead of minutes
seed=N          the seed of a run that is to be repeated; a random one is printed
formats=A,B     only these
jobs=N          processes at a time; all cores if not given
failures=FOLDER where files of failures are written; build/fuzz if not given
link=yes        in a last tenth of the time fuzz the C of the board link by libFuzzer too
repeat=FOLDER   read the files of one failure again, and print what happens

Prints a table at its end. Exit code 1: there were failures.
"""

from __future__ import annotations

import itertools
import os
import pickle
import random
import select
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parents[1])]
for library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

from checkout import ROOT  # noqa: E402 it is found by the line above
from fuzzing import cases, link  # noqa: E402
from fuzzing.formats import FORMATS  # noqa: E402
from fuzzing.process import FAILURE  # noqa: E402

SLICE = 200  # cases that a process reads before it ends

Task = tuple[str, range]


def tasks(chosen: Sequence[str], count: int | None) -> Iterator[Task]:
    """Slices of all formats in turn; formats with more weight more often."""
    for k in itertools.count():
        for name in chosen:
            size = SLICE if count is None else min(SLICE, count - k * SLICE)
            if size <= 0:
                return
            for part in range(FORMATS[name].weight if count is None else 1):
                begin = (k * FORMATS[name].weight + part) * SLICE if count is None else k * SLICE
                yield name, range(begin, begin + size)


def start(task: Task, valid: list[cases.Files], seed: int, failures: Path) -> tuple[int, int]:
    """A process that reads a slice: its number, and a pipe with its tally."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        code = 1
        try:
            os.close(reading)
            found = cases.tally(task[0], valid, seed, task[1], failures)
            os.write(writing, pickle.dumps(found))
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    return process, reading


def fuzz(
    chosen: Sequence[str], seed: int, count: int | None, minutes: float, jobs: int, failures: Path
) -> dict[str, cases.Tally]:
    """The outcomes of cases of these formats."""
    valid = {name: cases.valid_files(FORMATS[name]) for name in chosen}
    found: dict[str, cases.Tally] = defaultdict(cases.Tally)
    running: dict[int, tuple[int, str]] = {}
    left, end = tasks(chosen, count), time.monotonic() + 60 * minutes
    task = next(left, None)
    while running or task is not None:
        while task is not None and len(running) < jobs:
            process, pipe = start(task, valid[task[0]], seed, failures)
            running[pipe] = process, task[0]
            task = next(left, None) if count is not None or time.monotonic() < end else None
        for pipe in select.select(list(running), [], [])[0]:
            process, name = running.pop(pipe)
            with os.fdopen(pipe, "rb") as file:
                data = file.read()
            if os.waitpid(process, 0)[1] or not data:
                found[name].outcomes[FAILURE] += 1
                found[name].places["the process that forks stops"] += 1
            else:
                found[name].add(pickle.loads(data))
    return {name: found[name] for name in chosen}


def show(found: Mapping[str, cases.Tally]) -> int:
    """Print the table; returns the exit code."""
    print(cases.HEAD)
    total = cases.Tally()
    for name, tally in found.items():
        print(tally.row(name))
        total.add(tally)
    print(total.row("all"))
    for name, tally in found.items():
        for place, number in tally.places.most_common():
            print(f"{name}: {number:,} x {place}")
    return int(total.outcomes[FAILURE] > 0)


def main(words: Sequence[str]) -> int:
    given = dict(word.split("=", 1) for word in words)
    if "repeat" in given:
        outcome = cases.repeat(Path(given["repeat"]))
        print(f"{outcome.kind}, {outcome.seconds:.1f} s: {outcome.place}\n{outcome.text}")
        return int(outcome.kind == FAILURE)
    seed = int(given.get("seed") or random.SystemRandom().randrange(1 << 31))
    chosen = given["formats"].split(",") if given.get("formats") else list(FORMATS)
    count = int(given["cases"]) if "cases" in given else None
    jobs = int(given.get("jobs") or len(os.sched_getaffinity(0)))
    failures = Path(given.get("failures") or ROOT / "build" / "fuzz").absolute()
    print(f"seed={seed}", flush=True)
    minutes = float(given.get("minutes") or 10)
    of_link = minutes / 10 if given.get("link") == "yes" else 0.0
    found = fuzz(chosen, seed, count, minutes - of_link, jobs, failures)
    if of_link:
        found["link frames"] = link.fuzz(seed, 60 * of_link, failures)
    return show(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
