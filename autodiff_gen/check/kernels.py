"""`test-kernels`: compare the kernels of a folder with `ref` over the shape tables, on the host or in QEMU.

The program is `kernels/compare`. It runs every case with arrays aligned to 64, 16, 8 and 4 bytes, between guard words.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import KernelError, ToolError
from ..host.compiler import cache_folder, fingerprint
from ..kernels import registry as kernel_tables
from ..kernels.contract import CONTRACT
from ..kernels.read_table import TABLE
from ..kernels.registry import Backends
from ..kernels.table import Backend, Kernel
from ..targets import build_commands, installation
from ..targets.board import Board
from ..targets.toolchain import install_hint
from .kernel_rows import DECLARATIONS, declarations, table

_SECONDS = 300


@dataclass
class _Run:
    """The cases of a row with arrays aligned to `align` bytes."""

    align: int
    cases: int = 0
    left_out: int = 0
    wrong: int = 0
    worst: float = 0.0
    of_bound: float = 0.0
    examples: list[str] = field(default_factory=list)
    died: str = ""

    @property
    def good(self) -> bool:
        return not self.wrong and not self.died


def test_kernels(backend: str, board: Board) -> tuple[list[str], bool]:
    """Compare a backend of the tree or a folder; returns one line per row of its table, and whether all passed.

    Raises KernelError if it does not compile or link, ToolError if the board has no emulator.
    """
    if not board.is_host and board.qemu is None:
        raise ToolError(
            f"board {board.id} has no emulator: test kernels on a board with a [qemu] section and the same core"
        )
    tables = kernel_tables.load([backend], features=board.target.features)
    tested = tables.backends[0]
    if tested.name == kernel_tables.REF:
        raise KernelError("ref is the reference of the comparison: name another backend or a folder")
    if not tested.kernels:
        raise KernelError(f"{tested.folder / TABLE} has no [[kernel]] to compare")
    with tempfile.TemporaryDirectory(prefix="test-kernels-") as name:
        program = _Program(tables, tested, board, Path(name))
        results = program.results()
    lines = [_line(row, runs) for row, runs in zip(tested.kernels, results, strict=True)]
    return [text for text, _ in lines], all(good for _, good in lines)


class _Program:
    def __init__(self, tables: Backends, tested: Backend, board: Board, folder: Path) -> None:
        self.tables, self.tested, self.board, self.folder = tables, tested, board, folder
        (folder / DECLARATIONS).write_text(declarations(tested.kernels))
        self.objects = [*self._of_the_backend(), *self._others()]

    def results(self) -> list[dict[int, _Run]]:
        """The runs of every row by alignment. After a row that crashes the program, the rows that follow are run in a
        new one."""
        by_row: list[dict[int, _Run]] = [{} for _ in self.tested.kernels]
        pending = list(range(len(by_row)))
        while pending:
            elf = self._link([self.tested.kernels[i] for i in pending])
            text, died = self._run(elf)
            runs = [by_row[i] for i in pending]
            last = _read(text, runs)
            if not died:
                break
            if last is None:
                raise KernelError(
                    f"{self.tested.name} on {self.board.id}: the program {died} before its first case"
                )
            number, align = last
            runs[number][align].died = died
            pending = pending[number + 1 :]
        return by_row

    # ---- building

    def _of_the_backend(self) -> list[Path]:
        objects: list[Path] = []
        for source in self.tables.sources():
            if source.backend == self.tested.name:
                own = source.path.suffix == ".c" and source.path not in self.tested.external
                check = ["-include", str(self.folder / DECLARATIONS)] if own else []
                target = self.folder / f"kernel_{len(objects)}.o"
                done = self._gcc(
                    *build_commands.STRICT_FLAGS,
                    *source.cflags,
                    *check,
                    "-c",
                    str(source.path),
                    "-o",
                    str(target),
                )
                if done.returncode:
                    raise KernelError(self._compile_error(source.path, done.stderr))
                objects.append(target)
        return objects

    def _others(self) -> list[Path]:
        compare = installation.kernels() / "compare"
        ref = [s for s in self.tables.sources() if s.backend != self.tested.name]
        support = [*sorted(compare.glob("*.c")), *build_commands.support_sources(self.board)]
        return [
            *self._compiled("ref", [s.path for s in ref], ref[0].cflags),
            *self._compiled("support", support, ()),
        ]

    def _compiled(self, name: str, sources: Sequence[Path], flags: Sequence[str]) -> list[Path]:
        """The objects of sources that are the same for every backend, cached."""
        headers = [p for d in self._include()[:-1] for p in sorted(d.glob("*.h"))]
        tool = shutil.which(build_commands.tool(self.board, "gcc")) or ""
        words = [os.path.realpath(tool), *build_commands.compile_flags(self.board), *flags]
        texts = [f"{p.name}\0{p.read_text(encoding='utf-8')}" for p in (*sources, *headers)]
        cached = cache_folder() / f"compare-{name}-{fingerprint(*words, *texts)}"
        if not cached.is_dir():
            folder = self.folder / name
            folder.mkdir()
            done = self._gcc(*flags, "-c", *map(str, sources), cwd=folder)
            if done.returncode:
                raise ToolError(
                    f"kernels/compare does not compile for {self.board.id}: {_first_error(done.stderr)}"
                )
            temporary = Path(tempfile.mkdtemp(dir=cache_folder(), prefix="build-"))
            shutil.copytree(folder, temporary, dirs_exist_ok=True)
            with contextlib.suppress(OSError):  # another process was first
                temporary.rename(cached)
            shutil.rmtree(temporary, ignore_errors=True)
        return sorted(cached.glob("*.o"))

    def _link(self, rows: Sequence[Kernel]) -> Path:
        main, elf = self.folder / "rows.c", self.folder / "compare.elf"
        main.write_text(table(rows))
        objects = map(str, (main, *self.objects))
        done = self._gcc(
            *objects, "-o", str(elf), *build_commands.link_flags(self.board), *self.tables.ldflags
        )
        if done.returncode:
            missing = next((r for r in rows if f"`{r.symbol}'" in done.stderr), None)
            if missing is not None:
                raise KernelError(
                    f"{missing.source}: {missing.symbol} is not defined, or is static, but is listed in "
                    f"{self.tested.folder / TABLE}"
                )
            if untested := re.search(r"`compare_(\w+)'", done.stderr):
                raise KernelError(f"kernels/compare has no COMPARE_CASES({untested[1]}): write its cases")
            raise KernelError(
                f"{self.tested.folder} does not link for {self.board.id}: {_first_error(done.stderr)}"
            )
        return elf

    def _include(self) -> list[Path]:
        return [
            *self.tables.include_dirs(),
            *build_commands.include_dirs(self.board),
            installation.kernels() / "compare",
            self.folder,
        ]

    def _gcc(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [
            build_commands.tool(self.board, "gcc"),
            *build_commands.compile_flags(self.board),
            *(f"-I{path}" for path in self._include()),
            *words,
        ]
        try:
            return subprocess.run(
                command, cwd=cwd or self.folder, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            hint = install_hint(self.board)
            raise ToolError(f"board {self.board.id}: {command[0]} is not installed; run: {hint}") from None

    def _compile_error(self, source: Path, stderr: str) -> str:
        error = _first_error(stderr)
        row = next((k for k in self.tested.kernels if re.search(rf"\b{k.symbol}\b", error)), None)
        if row is not None and re.search("conflicting types|static declaration", error):
            return (
                f"{row.symbol} is not the contract's {CONTRACT[row.name].type_name} of ag_kernels.h: {error}"
            )
        return f"{source} does not compile for {self.board.id} under the strict warnings: {error}"

    # ---- running

    def _run(self, elf: Path) -> tuple[str, str]:
        """The program's output, and how it ended abnormally, if it did."""
        command = build_commands.qemu_argv(self.board, elf)
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_SECONDS,
            )
        except FileNotFoundError:
            hint = install_hint(self.board)
            raise ToolError(f"board {self.board.id}: {command[0]} is not installed; run: {hint}") from None
        except subprocess.TimeoutExpired as late:
            output = late.stdout or b""
            return output.decode(errors="replace") if isinstance(output, bytes) else output, "does not end"
        if done.returncode == 0:
            return done.stdout, ""
        if done.returncode < 0:
            return done.stdout, f"ends by {signal.Signals(-done.returncode).name}"
        faults = [line for line in done.stdout.splitlines() if line.startswith("fault")]
        return (
            done.stdout,
            f"ends by a fault ({faults[0]})" if faults else f"ends with exit code {done.returncode}",
        )


def _first_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next(
        (line for line in lines if "error:" in line or "undefined reference" in line),
        lines[0] if lines else "",
    )


def _read(text: str, runs: Sequence[dict[int, _Run]]) -> tuple[int, int] | None:
    """Add the program's output to `runs`; returns the row and the alignment of the last run, if any."""
    last = None
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] not in ("begin", "wrong", "done"):
            continue
        number, align = int(words[1]), int(words[2])
        if words[0] == "begin":
            last = number, align
            runs[number][align] = _Run(align)
        elif words[0] == "wrong":
            runs[number][align].examples.append(" ".join(words[3:]))
        else:
            cases, left_out, wrong = map(int, words[3:6])
            run = runs[number][align]
            run.cases, run.left_out, run.wrong = cases, left_out, wrong
            run.worst, run.of_bound = float(words[6]), float(words[7])
    return last


def _line(row: Kernel, runs: dict[int, _Run]) -> tuple[str, bool]:
    """The report of a row, and whether it passed."""
    name = f"{row.name} {row.symbol}"
    cases = sum(r.cases for r in runs.values())
    left_out = sum(r.left_out for r in runs.values())
    when = " and ".join(map(str, row.when))
    bad = [r for r in runs.values() if not r.good]
    if bad:
        return f"{name}: WRONG: {_fault(row.name, runs, bad)}", False
    if not cases:
        return f"{name}: WRONG: no case of the shape table meets {when}, so it was not tested", False
    worst, of_bound = (max(getattr(r, k) for r in runs.values()) for k in ("worst", "of_bound"))
    text = f"{name}: {cases} cases right, worst error {worst:.2g}, {of_bound:.0%} of its bound"
    return text + (f"; {left_out} left out by {when}" if left_out else ""), True


def _fault(kernel: str, runs: dict[int, _Run], bad: Sequence[_Run]) -> str:
    first = bad[0]
    how = first.died or f"differs from ref in {first.wrong} of {first.cases} cases"
    enough = [r.align for r in runs.values() if r.good and r.cases]
    if enough and min(enough) > max(r.align for r in bad):
        return (
            f"right with arrays at multiples of {min(enough)} bytes, {how} at multiples of {first.align}: "
            f'its row needs when = ["align >= {min(enough)}"]'
        )
    if not first.examples:
        return how
    facts = CONTRACT[kernel].facts
    sizes = [word for word in first.examples[0].split() if word.partition("=")[0] in facts]
    return f"{how}, such as {' '.join(sizes)}"
