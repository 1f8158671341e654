"""Commands of the benchmark, which SCons calls: bench-sources, bench-count. Each imports what it needs when it runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

Command = Callable[[str, str], argparse.ArgumentParser]
Arguments = Callable[[argparse.ArgumentParser], None]


def add_bench_commands(command: Command, model: Arguments, target: Arguments) -> None:
    """`command` adds one to the command line, `model` and `target` their arguments."""
    sources = command(
        "bench-sources",
        "Write NAME.c with marks, NAME.h, NAME_params.c, NAME_bench.c with main and NAME_marks.json.",
    )
    model(sources)
    target(sources)
    sources.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder that they go to")
    sources.add_argument(
        "--steps", metavar="N", type=int, default=4, help="training steps (default: %(default)s)"
    )
    sources.set_defaults(run=_sources)

    count = command(
        "bench-count", "Count the instructions of a benchmark's programs in QEMU; write bench.json."
    )
    target(count)
    for name, what in (
        ("--plain", "the program with ordinary generated C"),
        ("--marked", "the same with marks"),
        ("--marks", "NAME_marks.json"),
        ("--out", "the record, bench.json"),
        ("--plugins", "the folder for the plugin"),
    ):
        count.add_argument(name, metavar="PATH", type=Path, required=True, help=what)
    count.set_defaults(run=_count)


def _sources(args: argparse.Namespace) -> int:
    from . import backends, board
    from .bench_text import bench_texts
    from .build import write_all
    from .compiler import compile_file
    from .errors import ModelError
    from .loader import load_file

    if args.steps < 1:
        raise ModelError(f"--steps {args.steps}: must be at least 1")
    chosen = board.load(args.board)
    kernels = backends.parse_list(args.kernels) if args.kernels else list(chosen.kernels.backends)
    file = load_file(args.model)
    program = compile_file(file.made, args.name or file.name, kernels, chosen, args.ram)
    write_all(args.out, bench_texts(program, file, args.steps))
    return 0


def _count(args: argparse.Namespace) -> int:
    from . import backends, board
    from .bench import Programs, last_record, measure, write_record
    from .bench_report import report

    chosen = board.load(args.board)
    kernels = backends.parse_list(args.kernels) if args.kernels else list(chosen.kernels.backends)
    record = measure(chosen, kernels, Programs(args.plain, args.marked, args.marks), args.plugins)
    print(report(record, last_record(args.out)))
    write_record(args.out, record)
    return 0
