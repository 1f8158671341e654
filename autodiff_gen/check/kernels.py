"""`test-kernels`: compare the kernels of a folder with `ref` over the shape tables, on the host or in QEMU.

The program is `kernels/compare`. It runs every case with arrays aligned to 64, 16, 8 and 4 bytes, between guard words.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import KernelError, ToolError
from ..host.compiler import first_error
from ..host.object_cache import Objects
from ..kernels import registry as kernel_tables
from ..kernels.contract import CONTRACT
from ..kernels.read_table import TABLE
from ..kernels.registry import Backends
from ..kernels.table import Backend, Kernel
from ..targets import build_commands, installation
from ..targets.board import BoardSpec
from ..targets.toolchain import install_hint
from .kernel_report import CaseRun, line_of, read
from .kernel_rows import DECLARATIONS, declarations, table

_SECONDS = 60  # the longest wait for output: whole programs take 0.1 to 6 s, and 40 s on a loaded machine
_ENDLESS = "does not end"
_LARGE = 8192  # COMPARE_LARGE: floats of an array on boards with RAM for 16 of them
_HOST = 32768  # COMPARE_HOST: floats of an array on the host
_LEVEL = "-O1"  # for `ref` and the cases: compiles faster than -O2, and runs about as fast
_ALIGNMENTS = (64, 16, 8, 4)  # of arrays.h; cores without FPU test only the last
# Feature of a core -> its header of intrinsics, which takes longer to parse than most sources to compile.
_INTRINSICS = {"avx2": "immintrin.h", "mve": "arm_mve.h", "neon": "arm_neon.h"}


def test_kernels(backend: str, board: BoardSpec, compiler: str = "gcc") -> tuple[list[str], bool]:
    """Compare a backend of the tree or a folder; returns one line per row of its table that the board's core can run,
    and whether all passed. `compiler`: of the board's toolchain, without its prefix.

    Raises KernelError for `ref`, for a backend without kernels, and for one that does not compile or link; ToolError if
    the board has no emulator, or a tool is missing.
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
        program = _Program(tables, tested, board, compiler, Path(name))
        results = program.results()
    lines = [line_of(row, runs) for row, runs in zip(program.rows, results, strict=True)]
    return [text for text, _ in lines], all(good for _, good in lines)


class _Program:
    def __init__(
        self, tables: Backends, tested: Backend, board: BoardSpec, compiler: str, folder: Path
    ) -> None:
        self.tables, self.tested, self.board, self.folder = tables, tested, board, folder
        self.compiler = build_commands.tool(board, compiler)
        self.rows = [row for row in tested.kernels if row.runs_on(tables.features)]
        (folder / DECLARATIONS).write_text(declarations(self.rows))
        self.objects = [*self._of_the_backend(), *self._others()]

    def results(self) -> list[dict[int, CaseRun]]:
        """The runs of every row by alignment. After a row that crashes the program, the rows that follow are run in a
        new one."""
        rows = self.rows
        by_row: list[dict[int, CaseRun]] = [{} for _ in rows]
        pending = list(range(len(by_row)))
        while pending:
            text, died = self._run(self._link([rows[i] for i in pending]))
            last = read(text, [by_row[i] for i in pending])
            if not died:
                break
            if last is None:
                raise KernelError(
                    f"{self.tested.name} on {self.board.id}: the program {died} before its first case"
                )
            endless = {_ALIGNMENTS[0]: CaseRun(_ALIGNMENTS[0], died=died)}
            by_row[pending[last]] = (
                endless if died == _ENDLESS else self._by_alignment(rows[pending[last]], died)
            )
            pending = pending[last + 1 :]
        return by_row

    def _by_alignment(self, row: Kernel, died: str) -> dict[int, CaseRun]:
        """The runs of a row that crashed the program, one program for each alignment, up to the first that crashes."""
        runs: dict[int, CaseRun] = {}
        for align in _ALIGNMENTS:
            text, again = self._run(self._link([row], align))
            read(text, [runs])
            if again or align == _ALIGNMENTS[-1]:
                runs.setdefault(align, CaseRun(align)).died = again or died
                break
        return runs

    # ---- building

    def _of_the_backend(self) -> list[Path]:
        include = [*self.tables.include_dirs(), *build_commands.include_dirs(self.board)]
        objects: list[Path] = []
        intrinsics, lines = self._intrinsics()
        for source in self.tables.sources():
            if source.backend == self.tested.name and source.path not in self.tested.external:
                headers = [self.folder / DECLARATIONS] if source.path.suffix == ".c" else []
                if headers and lines <= self._lines(source.path):
                    headers = [*intrinsics, *headers]
                words = [*build_commands.STRICT_FLAGS, *source.cflags]
                words += [word for header in headers for word in ("-include", str(header))]
                target = self.folder / f"kernel_{len(objects)}.o"
                done = self._compile(self.board, source.path, target, words, include)
                if done.returncode:
                    raise KernelError(self._compile_error(source.path, done.stderr))
                objects.append(target)
        folders = [p for d in self.tested.include for p in (d, *d.rglob("*/"))]
        return objects + self._cached(self.board, self.tested.external, self.tested.external_cflags, folders)

    def _lines(self, source: Path) -> set[str]:
        """The lines of a source and of the backend's headers that it includes."""
        texts, pending = dict[Path, str](), [source]
        for path in pending:
            if path not in texts and path.is_file():
                texts[path] = path.read_text(encoding="utf-8")
                names = re.findall(r'#include "([^"]+)"', texts[path])
                pending += [
                    folder / n for n in names for folder in (path.parent, *self.tables.include_dirs())
                ]
        return {line for text in texts.values() for line in text.splitlines()}

    def _intrinsics(self) -> tuple[list[Path], set[str]]:
        """The core's header of intrinsics if the backend includes it, precompiled with the flags of its sources, and
        the lines that include it: a source without them does not get it."""
        texts = [path.read_text(encoding="utf-8") for path in self.tested.folder.glob("*.h")]
        lines = [f"#include <{_INTRINSICS[f]}>" for f in self.board.target.features if f in _INTRINSICS]
        read = [line for line in lines if any(line in text for text in texts)]
        if not read:
            return [], set()
        header = self.folder / "intrinsics.h"
        header.write_text("".join(f"{line}\n" for line in read))
        words = [*build_commands.STRICT_FLAGS, *self.tested.sources[0].cflags]
        self._compile(self.board, header, self.folder / "intrinsics.h.gch", words, [])
        return [header], {*read}

    def _others(self) -> list[Path]:
        """The objects of `ref`, the cases and the support code, which are the same for every backend. On the host they
        are the same for every vector width, too: `ref` gives the same bits, so of the board's flags only macros of the
        program are used."""
        compare, support = installation.kernels() / "compare", build_commands.support_sources(self.board)
        ref = replace(self.tables, backends=tuple(b for b in self.tables.backends if b is not self.tested))
        kernels, system = ref.include_dirs(), build_commands.include_dirs(self.board)
        plain, ram = self.board, self.board.ram_bytes
        if plain.is_host:
            flags = tuple(f for f in plain.target.cflags if f.startswith("-DCOMPARE_"))
            plain = replace(plain, target=replace(plain.target, cflags=flags))
        floats = _HOST if ram is None else _LARGE
        large = [f"-DCOMPARE_FLOATS={floats}"] if ram is None or ram >= 16 * 4 * floats else []
        sources, words = [s.path for s in ref.sources()], [*ref.sources()[0].cflags, _LEVEL]
        return [
            *self._cached(plain, sources, words, kernels),
            *self._cached(plain, sorted(compare.glob("*.c")), [*large, _LEVEL], [*kernels, *system, compare]),
            *self._cached(plain, support, (), system),
        ]

    def _cached(
        self, board: BoardSpec, sources: Sequence[Path], words: Sequence[str], include: Sequence[Path]
    ) -> list[Path]:
        """The objects of sources, compiled with the flags of `board`, or taken from the cache."""
        objects = Objects([self.compiler, *_flags(board), *words], include, self.board.id)
        return [objects.of(source) for source in sources]

    def _link(self, rows: Sequence[Kernel], align: int = 0) -> Path:
        main, elf = self.folder / "rows.c", self.folder / "compare.elf"
        main.write_text(table(rows, align))
        kernels = installation.kernels()
        include = [f"-I{path}" for path in (kernels, kernels / "compare", self.folder)]
        words = [str(main), *map(str, self.objects), "-o", str(elf)]
        flags = [*build_commands.link_flags(self.board), *self.tables.ldflags]
        done = self._gcc(self.board, *include, *words, *flags)
        if done.returncode:
            missing = next((r for r in rows if f"`{r.symbol}'" in done.stderr), None)
            if missing is not None:
                raise KernelError(
                    f"{missing.source}: {missing.symbol} is not defined, or is static, but is listed in "
                    f"{self.tested.folder / TABLE}"
                )
            if untested := re.search(r"`compare_(\w+)'", done.stderr):
                raise KernelError(f"kernels/compare has no COMPARE_CASES({untested[1]}): write its cases")
            if full := re.search(r"region `(\w+)' overflowed by (\d+) bytes", done.stderr):
                raise KernelError(
                    f"the program that compares kernels needs {full[2]} bytes more of {full[1]} than board "
                    f"{self.board.id} has; test on a larger board of the same core, or on a copy of the board's file "
                    "with more memory, as far as the emulator has it"
                )
            raise KernelError(
                f"{self.tested.folder} does not link for {self.board.id}: {first_error(done.stderr)}"
            )
        return elf

    def _compile(
        self, board: BoardSpec, source: Path, target: Path, words: Sequence[str], include: Sequence[Path]
    ) -> subprocess.CompletedProcess[str]:
        return self._gcc(
            board, *words, *(f"-I{path}" for path in include), "-c", str(source), "-o", str(target)
        )

    def _gcc(self, board: BoardSpec, *words: str) -> subprocess.CompletedProcess[str]:
        command = [self.compiler, *_flags(board), *words]
        try:
            return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            usual = self.compiler == build_commands.tool(self.board, "gcc")
            hint = f"run: {install_hint(self.board)}" if usual else "install it, or leave out --compiler"
            raise ToolError(f"board {self.board.id}: {command[0]} is not installed; {hint}") from None

    def _compile_error(self, source: Path, stderr: str) -> str:
        error = first_error(stderr)
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
            text, code = _output(command, self.folder)
        except FileNotFoundError:
            hint = install_hint(self.board)
            raise ToolError(f"board {self.board.id}: {command[0]} is not installed; run: {hint}") from None
        if code is None:
            return text, _ENDLESS
        if code < 0:
            return text, f"ends by {signal.Signals(-code).name}"
        faults = [line for line in text.splitlines() if line.startswith("fault")]
        abnormal = f"ends by a fault ({faults[0]})" if faults else f"ends with exit code {code}"
        return text, abnormal if code else ""


def _output(command: Sequence[str], folder: Path) -> tuple[str, int | None]:
    """The output of a program, and its exit code; None if it was killed because it printed nothing for _SECONDS."""
    parts: list[bytes] = []
    code = None
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as program:
        assert program.stdout is not None
        try:
            while code is None and select.select([program.stdout], [], [], _SECONDS)[0]:
                parts.append(os.read(program.stdout.fileno(), 1 << 16))
                code = None if parts[-1] else program.wait(_SECONDS)
        finally:
            program.kill()
    return b"".join(parts).decode(errors="replace"), code


def _flags(board: BoardSpec) -> list[str]:
    """The board's flags without its name, which the program does not print, without debug information, and without
    link-time optimisation, which not every compiler supports."""
    left_out = ("-g", "-flto", "-ffat-lto-objects", "-DAG_BOARD=")
    return [flag for flag in build_commands.compile_flags(board) if not flag.startswith(left_out)]
