"""C programs that the benchmark times: the generated and the naive trainer, each a library with loop.c."""

from __future__ import annotations

import ctypes
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from workload import Workload

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.kernels import registry
from autodiff_gen.kernels.table import Kernel
from autodiff_gen.targets import board, build_commands

HERE = Path(__file__).resolve().parent


class Program:
    """A loaded library; every call starts from the initial weights."""

    def __init__(self, library: Path, workload: Workload) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.loop_seconds.restype = ctypes.c_double
        self._workload = workload

    def _data(self) -> list[Any]:
        x, y = self._workload.x, self._workload.y
        steps = (x[0].size, y[0].size, len(x))
        return [ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), *map(ctypes.c_int32, steps)]

    def losses(self, steps: int) -> list[float]:
        """The losses of the first steps."""
        out = np.zeros(steps, np.float32)
        self._library.loop_start()
        status = self._library.loop_losses(*self._data(), steps, ctypes.c_void_p(out.ctypes.data))
        assert status == 0, f"a step of {self._workload.name} returns status {status}"
        return [float(v) for v in out]

    def seconds(self, steps: int) -> float:
        """Processor time of the first steps in seconds, by a loop in C."""
        self._library.loop_start()
        taken = float(self._library.loop_seconds(*self._data(), steps))
        assert taken >= 0, f"a step of {self._workload.name} fails"
        return taken


def generated(workload: Workload, board_name: str, kernels: Sequence[str], folder: Path) -> Program:
    """The generated trainer, built with the flags of the board."""
    b = board.load(board_name)
    tables = registry.for_board(b, kernels or None)
    name = workload.name
    program = compile_model(workload.model, name, tables.names, b)
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in emit(program).items():
        (folder / file).write_text(text)
    entry = next(e for e in program.entries if e.name == "train_step")
    words = [f"{workload.x.shape[1]}"] if entry.takes_n else []
    words += [f"{name.upper()}_DEFAULT_LR"]
    macros = {
        "MODEL_H": f'"{name}.h"',
        "TRAINER": f"{name}_trainer",
        "TARGET": _target(workload),
        "INIT(t)": f"{name}_init(t, 0)",
        "STEP(t, x, y, loss)": f"{name}_train_step(t, x, y, {', '.join(words)}, loss)",
    }
    include = (folder, *tables.include_dirs(), *build_commands.include_dirs(b))
    # debug information and machine code beside the code for the link take half of the time; the link reads neither
    own = [flag for flag in build_commands.compile_flags(b) if flag not in ("-g", "-ffat-lto-objects")]
    # as in a program: only the loop calls the trainer
    flags = [*own, "-fPIC", "-fvisibility=hidden", *(f"-I{p}" for p in include)]
    contract = "-ffp-contract=off" if tables.only_ref else "-ffp-contract=fast"
    objects = kernel_objects(b, tables, program.kernels, flags, folder.parent)
    for source, more in [
        (folder / f"{name}.c", [contract]),
        (folder / f"{name}_params.c", [contract]),
        (HERE / "loop.c", [f"-D{k}={v}" for k, v in macros.items()]),
    ]:
        objects.append(folder / f"{source.stem}.o")
        _run([build_commands.tool(b, "gcc"), *flags, *more, "-c", str(source), "-o", str(objects[-1])])
    library = folder / f"lib{name}.so"
    link = [*build_commands.link_flags(b), *tables.ldflags]
    _run(
        [
            build_commands.tool(b, "gcc"),
            "-shared",
            "-Wl,-Bsymbolic",
            *map(str, objects),
            "-o",
            str(library),
            *link,
        ]
    )
    return Program(library, workload)


_compiled: set[Path] = set()


def kernel_objects(
    b: board.BoardSpec, tables: registry.Backends, called: Sequence[Kernel], flags: list[str], folder: Path
) -> list[Path]:
    """The object files of the kernels that a program calls, and of the sources that kernels share. Each is compiled
    once in this process for each folder, board and list of backends."""
    home = folder / f"{b.id}+{'+'.join(tables.names)}"
    home.mkdir(parents=True, exist_ok=True)
    objects = []
    for s in tables.sources(called):
        target = home / f"{s.backend}_{s.path.stem}.o"
        if target not in _compiled:
            _run([build_commands.tool(b, "gcc"), *flags, *s.cflags, "-c", str(s.path), "-o", str(target)])
            _compiled.add(target)
        objects.append(target)
    return objects


def naive(workload: Workload, folder: Path) -> Program:
    """The workload as plain loops, compiled by gcc -O2."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / f"lib{workload.name}_naive.so"
    macros = {
        "MODEL_H": '"naive.c"',
        "WORKLOAD": workload.name[1],
        "BATCH": str(workload.x.shape[1]),
        "TRAINER": "naive_trainer",
        "TARGET": _target(workload),
        "INIT(t)": "naive_init(t)",
        "STEP(t, x, y, loss)": "naive_step(t, x, y, loss)",
    }
    flags = ["-std=c99", "-O2", "-fPIC", "-Wno-unused-function", *(f"-D{k}={v}" for k, v in macros.items())]
    _run(["gcc", *flags, "-shared", str(HERE / "loop.c"), "-o", str(library), "-lm"])
    return Program(library, workload)


def _target(workload: Workload) -> str:
    return "uint8_t" if workload.y.dtype == np.uint8 else "float"


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stderr}")


def versions() -> str:
    """The processor, the compiler and the peers, for the table's caption."""
    words = []
    info = Path("/proc/cpuinfo")
    if info.is_file():
        models = [
            x.split(":", 1)[1].strip() for x in info.read_text().splitlines() if x.startswith("model name")
        ]
        words += models[:1]
    done = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=False)
    words.append(f"gcc {done.stdout.strip()}")
    for name in ("torch", "jax"):
        if name in sys.modules:
            words.append(f"{name} {sys.modules[name].__version__}")
    return ", ".join(words)
