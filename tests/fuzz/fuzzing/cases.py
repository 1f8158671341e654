"""Cases by number: the mutated files of a case follow from the seed, the format and the number."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import messages
from .formats import FORMATS, Files, Format, names
from .process import FAILURE, MODEL, OUT, REJECTED, RIGHT, Outcome, run

KEPT = 3  # files of each failure


@dataclass
class Tally:
    """The outcomes of a format's cases. places: failures by what happened; slowest: seconds of processor time of a
    case."""

    outcomes: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0

    def add(self, other: Tally) -> None:
        self.outcomes.update(other.outcomes)
        self.places.update(other.places)
        self.slowest = max(self.slowest, other.slowest)

    def count(self, outcome: Outcome) -> None:
        self.outcomes[outcome.kind] += 1
        self.slowest = max(self.slowest, outcome.seconds)
        if outcome.kind == FAILURE:
            self.places[outcome.place] += 1

    def row(self, name: str) -> str:
        cases = sum(self.outcomes.values())
        counts = (self.outcomes[RIGHT], self.outcomes[REJECTED], self.outcomes[FAILURE])
        return f"{name:<16}{cases:>9,}" + "".join(f"{n:>10,}" for n in counts) + f"{self.slowest:>10.1f}"


HEAD = f"{'format':<16}{'cases':>9}{'right':>10}{'rejected':>10}{'failures':>10}{'slowest':>10}"


def separately(make: Callable[[], Any]) -> Any:
    """The result of a function that runs in another process, since it loads large modules."""
    with tempfile.TemporaryFile() as file:
        process = os.fork()
        if not process:
            try:
                file.write(pickle.dumps(make()))
                file.flush()
                os._exit(0)
            finally:
                import traceback

                traceback.print_exc()
                os._exit(1)
        if os.waitpid(process, 0)[1]:
            raise RuntimeError("a process that makes files failed")
        file.seek(0)
        return pickle.loads(file.read())


def valid_files(format: Format) -> list[Files]:
    """The valid files of a format, with those beside them."""
    made: list[Files] = separately(format.make) if format.needs_torch else format.make()
    return made


def mutated(format: Format, valid: Sequence[Files], name: str, seed: int, number: int) -> Files:
    """The files of a case."""
    rng = random.Random(f"{seed} {name} {number}")
    np.random.seed(0)
    files = dict(rng.choice(valid))
    changeable = [f for f in files if Path(f).suffix in format.mutate]
    chosen = changeable[0] if rng.random() < 0.8 else rng.choice(changeable)
    files[chosen] = format.mutate[Path(chosen).suffix](files[chosen], rng)
    return files


class Reader:
    """Reads files of one format, each in a process forked from this one."""

    def __init__(self, name: str, valid: Sequence[Files] = ()) -> None:
        self._format = FORMATS[name]
        self._scratch = Path(tempfile.mkdtemp(prefix="fz"))
        self._read = self._format.prepare(self._scratch / MODEL)
        for k, files in enumerate(valid):  # loads late imports
            self.outcome_of(files, k, fork=False)

    def close(self) -> None:
        shutil.rmtree(self._scratch)

    def outcome_of(self, files: Files, number: int, fork: bool = True) -> Outcome:
        """The outcome of reading files. fork: not for valid ones, whose errors are raised."""
        folder = self._scratch / "c"
        folder.mkdir()
        try:
            for file, data in files.items():
                (folder / file).parent.mkdir(exist_ok=True)
                (folder / file).write_bytes(data)
            path = folder / next(iter(files))
            if not fork:
                before = Path.cwd()
                os.chdir(folder)
                (folder / OUT).mkdir(exist_ok=True)
                try:
                    self._read(path, 0)
                finally:
                    os.chdir(before)
                return Outcome(RIGHT)
            own = [str(folder)] if self._format.folder else names(self._format, list(files))
            return run(
                lambda: self._read(path, number),
                folder,
                lambda text: messages.fault(text, own),
                (),
                self._format.modules,
            )
        finally:
            shutil.rmtree(folder)


def tally(name: str, valid: Sequence[Files], seed: int, numbers: Sequence[int], failures: Path) -> Tally:
    """The outcomes of cases; files of failures are kept."""
    reader, found = Reader(name, valid), Tally()
    try:
        for number in numbers:
            files = mutated(FORMATS[name], valid, name, seed, number)
            outcome = reader.outcome_of(files, number)
            found.count(outcome)
            if outcome.kind == FAILURE and found.places[outcome.place] <= KEPT:
                _keep(failures, name, seed, number, files, outcome)
    finally:
        reader.close()
    return found


def _keep(failures: Path, name: str, seed: int, number: int, files: Files, outcome: Outcome) -> None:
    """Write the files of a failure, and print what happened."""
    slug = name.replace(" ", "_").replace(".", "_")
    folder = failures / f"{slug}-{seed}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    for file, data in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
    case = {
        "format": name,
        "number": number,
        "files": list(files),
        "place": outcome.place,
        "text": outcome.text,
    }
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
    shown = outcome.text.strip().splitlines()[-1][:300] if outcome.text.strip() else ""
    print(
        f"{name} case {number}: {outcome.place}: {shown}\n  again: .venv/bin/python tests/fuzz/run.py repeat={folder}",
        flush=True,
    )


def repeat(folder: Path) -> Outcome:
    """The outcome of a failure's files."""
    case = json.loads((folder / "case.json").read_text())
    reader = Reader(case["format"])
    try:
        return reader.outcome_of(
            {file: (folder / file).read_bytes() for file in case["files"]}, case["number"]
        )
    finally:
        reader.close()
