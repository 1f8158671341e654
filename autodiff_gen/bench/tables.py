"""The QEMU section of docs/benchmarks.md: workloads, networks and kernels on emulated boards, compared with published
measurements."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ToolError
from ..targets import build_commands, installation
from ..targets.board import load
from .markdown import markdown_table, replace_section
from .report import number

Record = Mapping[str, Any]
Run = Callable[[Sequence[str]], None]
SECTION = "qemu"


def document() -> Path:
    """The document with the tables."""
    return installation.root() / "docs" / "benchmarks.md"


def write_qemu_tables(run: Run) -> str:
    """Measure everything with `run`, which takes SCons arguments; write the section and return it. Raises ToolError."""
    text = qemu_tables(run)
    replace_section(document(), SECTION, text)
    return text


def qemu_tables(run: Run) -> str:
    """The text of the section."""
    path = installation.root() / "bench" / "qemu" / "published.toml"
    published = tomllib.loads(path.read_text(encoding="utf-8"))
    parts = [_versions([entry["id"] for entry in published["board"]])]
    kernels = []
    for entry in published["board"]:
        parts.append(_workloads(entry, _records(run, entry, installation.workloads())))
        words = _words(entry)
        for name in entry.get("small", ()):
            run([*words, f"model={name}", "profile=size", "bench"])
            parts.append(_small(_record(entry, name, "bench.json", "+profile=size")))
        run([*words, "bench-kernels"])
        kernels.append((entry, _record(entry, "kernels", "kernels.json")))
    networks = published["networks"]
    names = [*installation.networks(), *installation.sparse_updates()]
    parts.append(_workloads(networks, _records(run, networks, names)))
    return "\n\n".join([*parts, _kernels(kernels)])


def _words(entry: Record) -> list[str]:
    return [f"board={entry['id']}", f"kernels={','.join(entry['kernels'])}"]


def _records(run: Run, entry: Record, names: Iterable[str]) -> list[Record]:
    """The records of the models, each counted now."""
    records = []
    for name in names:
        run([*_words(entry), f"model={name}", "bench"])
        records.append(_record(entry, name, "bench.json"))
    return records


def _record(entry: Record, name: str, file: str, more: str = "") -> Record:
    folder = f"{name}+kernels={'+'.join(entry['kernels'])}{more}"
    record: Record = json.loads(
        (installation.root() / "build" / Path(entry["id"]).stem / folder / file).read_text()
    )
    return record


def _small(record: Record) -> str:
    text, instructions = number(record["text"]["together"]), number(record["instructions_per_step"])
    built = f"Built for size (`profile=size`) {installation.title(record['model'])}"
    return f"{built} has {text} bytes of text and takes {instructions} instructions."


def _versions(boards: Sequence[str]) -> str:
    tools: dict[str, None] = {}
    for chosen in map(load, boards):
        assert chosen.qemu is not None
        tools |= dict.fromkeys((build_commands.tool(chosen, "gcc"), chosen.qemu.binary))
    versions: dict[str, None] = {}
    for tool in tools:
        try:
            done = subprocess.run(
                [tool, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL
            )
        except OSError:
            raise ToolError(f"{tool} is not installed") from None
        versions[done.stdout.splitlines()[0].partition(" (Debian 1:")[0]] = None
    return f"Counted with {', '.join(versions)}; every build with the boards' own flags."


def _workloads(entry: Record, records: Sequence[Record]) -> str:
    known = entry.get("step", {})
    rows = []
    for r in records:
        best, by = known.get(r["model"], (None, ""))
        rows.append(
            (
                installation.title(r["model"]),
                number(r["instructions_per_step"]),
                number(r["cycles_per_step"]),
                f"{r['instructions_per_mac']:.2f}",
                number(r["text"]["together"]),
                number(r["stack"]),
                *([] if not known else [f"{number(best)} ({r['instructions_per_step'] / best:.2f}), {by}"]),
            )
        )
    head = ("", "instructions per step", "cycles (estimate)", "per MAC", "text", "stack")
    elsewhere = ("best known elsewhere (ratio)",) if known else ()
    title = f"### {entry['title']} (`{entry['id']}`, kernels `{','.join(entry['kernels'])}`)"
    return f"{title}\n\n{markdown_table((*head, *elsewhere), rows, tuple(range(1, len(head))))}"


def _kernels(measured: Sequence[tuple[Record, Record]]) -> str:
    """A row for each kernel and sizes; kernels of gradients share the row of the forward kernel."""
    columns: list[str] = []
    cells: dict[tuple[str, str], dict[str, list[str]]] = {}
    for entry, record in measured:
        columns.append(entry["title"])
        known = entry.get("per_mac", {})
        for case in record["cases"]:
            best, by = known.get(f"{case['family']} {case['sizes']}", (None, ""))
            own = f"{case['instructions_per_mac']:.2f}" + " ref" * case["symbol"].endswith("_ref")
            elsewhere = "" if best is None else f" ({best} {by})"
            family, _, gradient = case["family"].partition("_d")
            row = (family, case["sizes"]) if gradient in ("x", "w") else (case["family"], case["sizes"])
            cells.setdefault(row, {}).setdefault(case["family"], []).append(own + elsewhere)
    rows = []
    for (family, sizes), found in cells.items():
        first, *others = found
        name = ", ".join([first, *(other.removeprefix(f"{family}_") for other in others)])
        rows.append((name, sizes, *map(", ".join, zip(*found.values(), strict=True))))
    title = "### Kernels: instructions per multiply-accumulate, including the call"
    note = "In parentheses: the best known elsewhere; `ref`: by the reference kernel."
    return f"{title}\n\n{note}\n\n{markdown_table(('', 'sizes', *columns), rows, ())}"
