"""Benchmark commands, which SCons calls."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .arguments import (
    Command,
    board_and_kernels,
    force_argument,
    model_argument,
    names,
    network,
    target_arguments,
)


def add_commands(command: Command) -> None:
    """Add the commands."""
    for add in (
        _add_bench,
        _add_sources,
        _add_count,
        _add_cycles,
        _add_kernel_sources,
        _add_costs,
        _add_kernel_count,
        _add_tables,
    ):
        add(command)


def _add_bench(command: Command) -> None:
    bench = command(
        "bench", "Count the cost of networks on several cores, also without stages of the compiler."
    )
    bench.add_argument(
        "networks",
        metavar="NETWORK",
        nargs="*",
        type=network,
        help="a model, or NAME:BYTES for a model with a limit of RAM, such as resnet8:480K (default: the networks of "
        "bench/stages.toml)",
    )
    bench.add_argument(
        "--without",
        metavar="STAGES",
        action="append",
        default=[],
        type=names,
        help="a stage of the pipeline that is left out, several together as a,b, or `all`: each one after the other; "
        "repeatable",
    )
    bench.add_argument(
        "--core",
        metavar="NAME",
        action="append",
        dest="cores",
        help="a core of bench/stages.toml: m4f, m55, a53 or host; repeatable (default: all)",
    )
    bench.add_argument(
        "--results",
        metavar="DIR",
        type=Path,
        default=Path("build/stages"),
        help="the folder of results, from which an interrupted run goes on (default: %(default)s)",
    )
    bench.add_argument(
        "--docs",
        metavar="FILE",
        type=Path,
        help="write the tables into the section `stages` of this document",
    )
    bench.set_defaults(run=_bench)


def _add_sources(command: Command) -> None:
    sources = command(
        "bench-sources",
        "Write NAME.c with probes, NAME.h, NAME_params.c, NAME_bench.c with main and NAME_probes.json.",
    )
    model_argument(sources)
    target_arguments(sources)
    sources.add_argument("--out", metavar="DIR", type=Path, required=True, help="the output folder")
    sources.add_argument(
        "--steps", metavar="N", type=int, default=4, help="training steps (default: %(default)s)"
    )
    force_argument(sources)
    sources.set_defaults(run=_sources)


def _add_count(command: Command) -> None:
    count = command(
        "bench-count", "Count the instructions of a benchmark's programs in QEMU; write bench.json."
    )
    target_arguments(count)
    for name, what in (
        ("--plain", "the program with ordinary generated C"),
        ("--probed", "the same with probes"),
        ("--probes", "NAME_probes.json"),
        ("--out", "the record, bench.json"),
        ("--plugins", "the folder for the plugin"),
    ):
        count.add_argument(name, metavar="PATH", type=Path, required=True, help=what)
    count.add_argument("--profile", default="speed", help="the build profile (default: %(default)s)")
    force_argument(count)
    count.set_defaults(run=_count)


def _add_cycles(command: Command) -> None:
    cycles = command("bench-cycles", "Read a benchmark's cycle counts from a board; write cycles.json.")
    target_arguments(cycles)
    cycles.add_argument(
        "--port", required=True, help="the port: /dev/ttyACM0, socket://host:number or exec:program"
    )
    for name, what in (("--probes", "NAME_probes.json"), ("--out", "the record, cycles.json")):
        cycles.add_argument(name, metavar="PATH", type=Path, required=True, help=what)
    force_argument(cycles)
    cycles.set_defaults(run=_cycles)


def _add_kernel_sources(command: Command) -> None:
    kernels = command("bench-kernel-sources", "Write kernels_bench.c, which calls kernels between probes.")
    target_arguments(kernels)
    kernels.add_argument("--out", metavar="DIR", type=Path, required=True, help="the output folder")
    kernels.add_argument(
        "--costs", action="store_true", help="for bench-costs: the calls from which it derives a table"
    )
    force_argument(kernels)
    kernels.set_defaults(run=_kernel_sources)


def _add_costs(command: Command) -> None:
    costs = command("bench-costs", "Print the cost table of a board's core, from two records.")
    target_arguments(costs)
    for name, what in (
        ("--functions", "bench.json of bench/qemu/costs.py"),
        ("--calls", "kernels.json of bench-kernel-sources --costs"),
    ):
        costs.add_argument(name, metavar="PATH", type=Path, required=True, help=what)
    costs.set_defaults(run=_costs)


def _add_kernel_count(command: Command) -> None:
    kernel_count = command(
        "bench-kernel-count", "Count the instructions of kernels in QEMU; write kernels.json."
    )
    target_arguments(kernel_count)
    for name, what in (
        ("--elf", "the program"),
        ("--probes", "kernels_probes.json"),
        ("--out", "the record, kernels.json"),
        ("--plugins", "the folder for the plugin"),
    ):
        kernel_count.add_argument(name, metavar="PATH", type=Path, required=True, help=what)
    force_argument(kernel_count)
    kernel_count.set_defaults(run=_kernel_count)


def _add_tables(command: Command) -> None:
    tables = command(
        "bench-tables", "Measure all workloads and kernels; write the tables of docs/benchmarks.md."
    )
    tables.add_argument(
        "--scons", metavar="PYTHON", default=sys.executable, help="the Python that runs SCons"
    )
    tables.set_defaults(run=_tables)


def _bench(args: argparse.Namespace) -> int:
    from ..bench.markdown import around_section, replace_section
    from ..bench.stage_ablation import chosen_cores, left_out_sets, measured
    from ..bench.stage_tables import tables
    from ..bench.stage_trials import settings

    if args.docs is not None:
        around_section(args.docs, "stages")  # an error before hours of measuring, not after them
    networks, cores = settings()
    bases, rows = measured(
        args.networks or [network(word) for word in networks],
        chosen_cores(args.cores, cores),
        left_out_sets(args.without),
        args.results,
        lambda line: print(line, flush=True),
    )
    text = tables(bases, rows)
    print(f"\n{text}")
    if args.docs is not None:
        replace_section(args.docs, "stages", text)
    return 0


def _sources(args: argparse.Namespace) -> int:
    from ..bench.program import bench_texts
    from ..errors import ModelError
    from ..model.build import compile_file
    from ..model.loader import load_file
    from ..owned_files import write_files

    if args.steps < 1:
        raise ModelError(f"--steps {args.steps}: must be at least 1")
    chosen, kernels = board_and_kernels(args)
    file = load_file(args.model)
    program = compile_file(file.made, args.name or file.name, kernels, chosen, args.ram)
    write_files(args.out, bench_texts(program, file, args.steps), args.force)
    return 0


def _count(args: argparse.Namespace) -> int:
    from ..bench.report import report
    from ..bench.step_benchmark import Programs, last_record, measure, write_record
    from ..kernels import registry

    chosen, kernels = board_and_kernels(args)
    programs = Programs(args.plain, args.probed, args.probes)
    record = measure(chosen, registry.for_board(chosen, kernels).names, args.profile, programs, args.plugins)
    print(report(record, last_record(args.out)))
    write_record(args.out, record, args.force)
    return 0


def _cycles(args: argparse.Namespace) -> int:
    from ..bench.on_board import listen, measured
    from ..bench.report import cycles_report
    from ..bench.step_benchmark import write_record
    from ..kernels import registry

    chosen, kernels = board_and_kernels(args)
    names = registry.for_board(chosen, kernels).names
    record = measured(chosen, names, args.probes, listen(args.port))
    print(cycles_report(record))
    write_record(args.out, record, args.force)
    return 0


def _kernel_sources(args: argparse.Namespace) -> int:
    from ..bench import kernel_cases, measure_cost_table
    from ..bench.kernels import kernel_texts
    from ..kernels import registry
    from ..owned_files import write_files

    chosen, kernels = board_and_kernels(args)
    cases = measure_cost_table.cases() if args.costs else kernel_cases.cases()
    write_files(args.out, kernel_texts(registry.for_board(chosen, kernels), cases), args.force)
    return 0


def _kernel_count(args: argparse.Namespace) -> int:
    from ..bench.kernels import measure_kernels
    from ..bench.report import kernel_report
    from ..bench.step_benchmark import last_record, write_record
    from ..kernels import registry

    chosen, kernels = board_and_kernels(args)
    names = list(registry.for_board(chosen, kernels).names)
    record = measure_kernels(chosen, names, args.elf, args.probes, args.plugins)
    print(kernel_report(record, last_record(args.out)))
    write_record(args.out, record, args.force)
    return 0


def _costs(args: argparse.Namespace) -> int:
    from ..bench.measure_cost_table import toml
    from ..bench.step_benchmark import last_record
    from ..errors import ToolError

    chosen, _ = board_and_kernels(args)
    records = []
    for path in (args.functions, args.calls):
        record = last_record(path)
        if record is None:
            raise ToolError(f"{path}: is no record of a benchmark; run bench again")
        records.append(record)
    print(toml(chosen, *records))
    return 0


def _tables(args: argparse.Namespace) -> int:
    from ..bench.tables import write_qemu_tables
    from ..errors import ToolError
    from ..targets import installation

    def run(words: Sequence[str]) -> None:
        print(f"./scons {' '.join(words)}", flush=True)
        command = [args.scons, "-P", "-m", "SCons", "-Q", *words]
        done = subprocess.run(command, cwd=installation.root(), capture_output=True, text=True)
        if done.returncode != 0:
            lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise ToolError(f"./scons {' '.join(words)} fails: {lines[0] if lines else 'no output'}")

    print(write_qemu_tables(run))
    return 0
