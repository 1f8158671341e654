"""Generated C under test: many programs in one library, called by ctypes with fences around every array."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from random_functions import Case
from random_models import Model

import autodiff_gen as ag
from autodiff_gen.codegen.compiler import compile_function, compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Entry, Program
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import HostFunction, Trainer
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.node import Value
from autodiff_gen.ir.types import bound, planned_size

_STATIC = re.compile(r"^static [^=;{]*?(\w+)(?:\[\d+\])*(?: = |\()", re.MULTILINE)  # tables and functions
FENCE = 16  # elements before and after an array that must stay as they are
C_TYPES = {
    "f32": ctypes.c_float,
    "s32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "s8": ctypes.c_int8,
    "u8": ctypes.c_uint8,
}
C_TYPES["bool"] = ctypes.c_uint8


def program_of(case: Case, name: str) -> Program:
    """The case compiled: a function where it has no states, else a model with this one entry."""
    if case.init:
        states = tuple(case.init)
        return compile_model(Model(states, max(case.batches), 0.05, [case.graph]), name)  # type: ignore[arg-type]
    return compile_function(SimpleNamespace(graph=case.graph, batch=max(case.batches)), name)  # type: ignore[arg-type]


def library_of(
    programs: Sequence[Program], opt: str = "-O1", cc: str | None = None, *, poison: bool = False
) -> ctypes.CDLL:
    """The programs, whose names differ, in one library. poison: as of `emit`, so that a value which is read too late,
    or before it is written, shows up in the results."""
    called = [kernel for program in programs for kernel in program.kernels]
    files = joined_files(programs, poison=poison)
    return Compiler(find_compiler(cc), opt).library(files, programs[0].backends, called)


def joined_files(programs: Sequence[Program], *, poison: bool = False) -> dict[str, str]:
    """The programs, whose names differ, as one file of C with their headers: a call of the compiler costs more than
    most programs do. poison: as of `library_of`."""
    together = {"together.c": ""}
    for program in programs:
        for name, text in emit(program, poison=poison).items():
            if name.endswith(".c"):
                for static in set(_STATIC.findall(text)):
                    text = re.sub(rf"\b{static}\b", f"{static}_of_{program.name}", text)
                together["together.c"] += text.replace("#define AG_MATH_SHORTCUTS 1", "")
            else:
                together[name] = text
    return together


def host_functions(specs: Sequence[Any]) -> list[HostFunction]:
    """As host_function with kernels of `ref` and -O0, for functions that are compiled together."""
    programs = [compile_function(spec, f"function{k}", ("ref",)) for k, spec in enumerate(specs)]
    compiler = _loads(library_of(programs, "-O0"))
    return [HostFunction(program, compiler) for program in programs]


def host_trainers(models: Sequence[Any]) -> list[Trainer]:
    """As host_trainer with kernels of `ref` and -O0, for models that are compiled together."""
    programs = [compile_model(model, f"model{k}", ("ref",)) for k, model in enumerate(models)]
    compiler = _loads(library_of(programs, "-O0"))
    return [Trainer(program, compiler) for program in programs]


def _loads(library: ctypes.CDLL) -> Any:
    """A compiler that has made this library of all programs."""
    return SimpleNamespace(library=lambda *_: library)


class Running:
    """One program of a library, with a separate struct; every call begins with an arena of NaN."""

    def __init__(self, library: ctypes.CDLL, program: Program) -> None:
        self.library, self.program = library, program
        fields: list[tuple[str, Any]] = [
            (s.c_name, C_TYPES[s.type.dtype.name] * planned_size(s.type.shape)) for s in program.slots
        ]
        fields += [
            ("before_arena", ctypes.c_float * program.padding_words),
            ("arena", ctypes.c_float * max(program.arena_words, 1)),
            ("int_arena", ctypes.c_int32 * program.int_words),
        ]
        fields += [("fence", ctypes.c_uint8 * 64)]
        self.memory = type("work", (ctypes.Structure,), {"_fields_": fields})()
        ctypes.memset(ctypes.byref(self.memory), 0xFF, ctypes.sizeof(self.memory))

    def array(self, slot_name: str) -> Any:
        slot = next(s for s in self.program.slots if s.name == slot_name)
        return np.ctypeslib.as_array(getattr(self.memory, slot.c_name)).reshape(slot.type.shape)

    def call(self, entry: Entry, feeds: Mapping[Value, Any], n: int) -> dict[str, Any]:
        """The outputs by name, given arrays for the entry's inputs."""
        ctypes.memset(ctypes.byref(self.memory.arena), 0xFF, ctypes.sizeof(self.memory.arena))
        ctypes.memset(ctypes.byref(self.memory.int_arena), 0xFF, ctypes.sizeof(self.memory.int_arena))
        args: list[Any] = []
        fenced: list[tuple[str, Any, int]] = []
        outs: dict[str, Any] = {}
        for arg in entry.parameters:
            if arg is None:
                args.append(ctypes.c_int32(n))
                continue
            if arg.by_value:
                assert arg.value is not None
                args.append(C_TYPES[arg.type.dtype.name](feeds[arg.value].item()))
                continue
            shape = bound(arg.type.shape, n)
            size = int(np.prod(shape))
            whole = np.full(
                size + 2 * FENCE, 77, dtype=arg.type.dtype.numpy if arg.type.dtype.kind != "b" else "uint8"
            )
            inside = whole[FENCE : FENCE + size]
            if arg.role == "output":
                inside[...] = np.nan if arg.type.dtype.kind == "f" else 99
                outs[arg.name] = inside.reshape(shape)
            else:
                inside[...] = np.asarray(feeds[arg.value]).reshape(-1)
            fenced.append((arg.name, whole, size))
            args.append(ctypes.c_void_p(whole.ctypes.data + FENCE * whole.itemsize))
        status = self.library[entry.c_name](ctypes.byref(self.memory), *args)
        assert status == 0, f"{entry.c_name}: status {status}"
        for name, whole, size in fenced:
            assert (whole[:FENCE] == 77).all() and (whole[FENCE + size :] == 77).all(), (
                f"{name}: written outside"
            )
        assert bytes(self.memory.fence) == b"\xff" * 64, "written past the arena"
        return {k: v.astype(bool) if _dtype(entry, k) == "bool" else v for k, v in outs.items()}


def _dtype(entry: Entry, output: str) -> str:
    return next(a.type.dtype.name for a in entry.args if a.role == "output" and a.name == output)


def expected(graph: Graph, values: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The interpreter's values of a graph's roots, as outputs by name and new states by name."""
    k = len(graph.outputs)
    return dict(zip(graph.outputs, values[:k], strict=True)), {
        s.name: a for s, a in zip(graph.updates, values[k:], strict=True)
    }


def c_of(inputs: list[Any], outputs: list[Any]) -> str:
    """The body of the generated function."""
    text = emit(compile_function(ag.function(inputs, outputs), "f"))["f.c"]
    return text[text.index("int f(") : text.index("const char *")]
