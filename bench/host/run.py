"""Times training steps of workloads and networks on the host: the generated C compared with PyTorch, JAX and naive C.

All programs start with the same weights and data; their first losses must agree, 50 of a workload. They run alternately
in one process on one core, and the median over the rounds is reported.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import table
import workload
from programs import generated, naive, versions
from workload import Workload

from autodiff_gen.errors import AutodiffError
from autodiff_gen.targets import board

FEATURES = {
    "host_avx512": {"avx512f", "avx512vl", "avx512bw", "avx512dq"},
    "host_avx2": {"avx2", "fma", "bmi2"},
}
OURS, NAIVE, EAGER, COMPILED, JAX = "autodiff_gen", "naive C, -O2", "PyTorch", "torch.compile", "JAX jit"
BY_HAND = (NAIVE, JAX)  # written for each workload; there is none for networks


def widest() -> str:
    """The host board with the widest vectors that this CPU supports."""
    info = Path("/proc/cpuinfo")
    flags = set(info.read_text().split()) if info.is_file() else set()
    return next((name for name, needed in FEATURES.items() if needed <= flags), "host")


def makers(
    board_name: str, kernels: list[str], folder: Path
) -> tuple[dict[str, Callable[[Workload], Any]], dict[str, str]]:
    """A factory for each program, and why others are absent."""
    made: dict[str, Callable[[Workload], Any]] = {
        OURS: lambda w: generated(w, board_name, kernels, folder / w.name),
        NAIVE: lambda w: naive(w, folder / "naive"),
    }
    absent = {}
    try:
        from peer_torch import Torch

        made |= {EAGER: Torch, COMPILED: lambda w: Torch(w, compiled=True)}
    except ImportError as error:
        absent |= {EAGER: str(error), COMPILED: str(error)}
    try:
        from peer_jax import Jax

        made[JAX] = Jax
    except ImportError as error:
        absent[JAX] = str(error)
    return made, absent


def disagreeing(name: str, losses: dict[str, list[float]], error: float = 1e-5) -> list[str]:
    """The peers whose losses differ from PyTorch's by more than `error`, each reported in a line. A difference of the
    generated or the naive C is an error."""
    reference = EAGER if EAGER in losses else OURS
    found = []
    for label, steps in losses.items():
        for step, (a, b) in enumerate(zip(losses[reference], steps, strict=True), 1):
            if abs(a - b) <= error * max(1.0, abs(a)):
                continue
            line = f"{name}: the loss of step {step} is {a:.7f} by {reference} and {b:.7f} by {label}"
            if label in (OURS, NAIVE):
                sys.exit(f"error: {line}")
            print(f"left out: {label}; {line}", flush=True)
            found.append(label)
            break
    return found


def measure(w: Workload, programs: dict[str, Any], rounds: int, seconds: float) -> dict[str, float]:
    """The median time of a step of each program; they run alternately, each for about `seconds`."""
    steps_per_round = {}
    for label, program in programs.items():
        program.seconds(2)
        steps_per_round[label] = max(2, int(seconds / max(program.seconds(10) / 10, 1e-9)))
    times: dict[str, list[float]] = {label: [] for label in programs}
    for _ in range(rounds):
        for label, program in programs.items():
            times[label].append(program.seconds(steps_per_round[label]) / steps_per_round[label])
    return {label: statistics.median(t) for label, t in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--board", default="", help="a host board; default: the widest that this CPU supports"
    )
    parser.add_argument("--kernels", default="", help="backends; default: the board's")
    parser.add_argument("--workloads", default=",".join(workload.NAMES))
    parser.add_argument("--programs", default="", help="comma-separated names; default: all")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.03, help="duration of one measurement")
    parser.add_argument("--out", type=Path, default=Path("build/bench/host.json"))
    parser.add_argument("--docs", type=Path, help="a Markdown file whose section <!-- host --> is replaced")
    given = parser.parse_args()
    b = board.load(given.board or widest())
    if not b.is_host:
        sys.exit(
            f"error: board {b.id} is not a host board; to count in QEMU: ./scons board={b.id} model=M bench"
        )
    kernels = given.kernels.split(",") if given.kernels else list(b.kernels.backends)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    made, absent = makers(b.id, kernels, given.out.parent / "host")
    if given.programs:
        made = {k: v for k, v in made.items() if k in given.programs.split(",")}
    for label, why in absent.items():
        print(f"absent: {label} ({why})", flush=True)
    results = []
    for name in given.workloads.split(","):
        w = workload.load(name)
        programs, excluded = {}, list(BY_HAND) if w.network else []
        for label, make in made.items():
            if label in excluded:
                continue
            try:
                programs[label] = make(w)
                programs[label].losses(2)
            except (AutodiffError, AssertionError):
                raise
            except Exception as error:  # a failure of a peer: reported, and the peer is left out
                if label in (OURS, NAIVE):
                    raise
                programs.pop(label, None)
                print(f"absent: {label} on {name} ({str(error).splitlines()[0][:100]})", flush=True)
        steps, error = w.compared
        wrong = disagreeing(name, {label: p.losses(steps) for label, p in programs.items()}, error)
        programs = {label: p for label, p in programs.items() if label not in wrong}
        times = measure(w, programs, given.rounds, given.seconds)
        microseconds = {k: v * 1e6 for k, v in times.items()}
        results.append(
            {"workload": name, "microseconds": microseconds, "disagree": wrong, "excluded": excluded}
        )
        print(table.line(results[-1], OURS), flush=True)
    record = {
        "schema": 1,
        "board": b.id,
        "kernels": kernels,
        "programs": list(made),
        "absent": absent,
        "versions": versions(),
        "results": results,
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(record, indent=1) + "\n")
    print(table.text(record, OURS, EAGER))
    if given.docs:
        table.write(given.docs, table.text(record, OURS, EAGER))


if __name__ == "__main__":
    try:
        main()
    except AutodiffError as error:
        sys.exit(f"error: {error}")
