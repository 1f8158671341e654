"""Host twins: many boards of one model in this process. Each trains as `runtime/ag_round.c` does on a board, by the C
of the model, bit for bit; they share one memory for each thread, and keep only what a board keeps between rounds."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.files import emit
from ..codegen.link import link_source
from ..codegen.program import Program, Slot
from ..codegen.shared_part import shared_part
from ..datasets.samples import sample_count
from ..device.errors import DeviceError
from ..device.frames import PAYLOAD
from ..device.rounds import ENCODINGS, F32, Local, Work, shared_slots
from ..host.compiler import Compiler, find_compiler
from ..targets import installation

Vector = NDArray[np.float32]
_RUNTIME = ("round", "round_shared", "gradients", "store", "samples", "console", "format")
_PIECE = {"f32": PAYLOAD // 4, "s8": PAYLOAD - 4}  # elements of a reply of the link


class _Work(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("round", "steps", "n")),
        *((name, ctypes.c_float) for name in ("lr", "mu")),
        *((name, ctypes.c_uint32) for name in ("seed", "local_buffers", "encoding", "piece", "delta_seed")),
    ]


class _Done(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("samples", "steps", "examples")),
        ("loss", ctypes.c_float),
    ]


@dataclass(frozen=True)
class Report:
    """What one board returns from a round: `delta` is the new weights less the weights of the start, flat."""

    board: int
    samples: int
    local: Local
    delta: Vector


@dataclass(frozen=True)
class Failure:
    """A board that did not finish a round, and why."""

    board: int
    reason: str

    def __str__(self) -> str:
        return f"board {self.board}: {self.reason}"


class Twins:
    """`sets`: the samples of each board, as the contents of samples.bin. `jobs`: threads. Raises ToolError."""

    def __init__(self, program: Program, sets: Sequence[bytes], jobs: int = 0, opt: str = "") -> None:
        self.program, self._sets = program, sets
        self._library = _library(program, opt)
        self._runs = shared_part(program)
        self._jobs = jobs or len(os.sched_getaffinity(0))
        self._memories = [self._memory() for _ in range(self._jobs)]
        self._states: dict[int, bytes] = {}  # of boards that have trained
        start = self._memories[0]
        self._check(self._library.ag_twin_init(start, 0), "init")
        self._initial = ctypes.string_at(self._library.ag_twin_state(start), program.state_bytes)
        shared = sum(run.end - run.offset for run in self._runs)
        self._keeps_nothing = shared == program.state_bytes  # beside the shared part

    def __len__(self) -> int:
        return len(self._sets)

    def samples(self, k: int) -> int:
        """How many a board has to train on."""
        return sample_count(self._sets[k])

    def slots(self, local_buffers: bool) -> list[Slot]:
        """The states that a round exchanges."""
        return shared_slots(self.program, local_buffers)

    def sample(self, i: int, samples: int, seed: int, epoch: int) -> int:
        """The sample at place i of an epoch of a board with so many."""
        return int(self._library.ag_round_sample(i, samples, seed, epoch))

    def train(
        self,
        number: int,
        weights: bytes,
        work: Callable[[int], Work],
        boards: Sequence[int],
        *,
        local_buffers: bool = False,
        encoding: str = F32,
        seed: Callable[[int], int] = int,
    ) -> Iterator[Report | Failure]:
        """Round `number` on some boards, in their order. weights: the shared part as a board stores it; work: of each
        board; seed: of the rounding of its difference."""

        def one(k: int) -> Report | Failure:
            memory = free.pop()
            try:
                return self._train(memory, k, number, weights, work(k), local_buffers, encoding, seed(k))
            except DeviceError as error:
                return Failure(k, str(error))
            finally:
                free.append(memory)

        free = list(self._memories)
        with ThreadPoolExecutor(self._jobs) as pool:
            yield from pool.map(one, boards)

    def _train(
        self,
        memory: Any,
        k: int,
        number: int,
        weights: bytes,
        work: Work,
        local_buffers: bool,
        encoding: str,
        seed: int,
    ) -> Report:
        work = work.on(self.samples(k), self.program.batch)
        start = bytearray(self._states.get(k, self._initial))
        at = elements = 0
        for run in self._runs:
            size = run.end - run.offset
            if not (local_buffers and run.is_buffer):
                start[run.offset : run.end] = weights[at : at + size]
                at, elements = at + size, elements + run.count
        state = self._library.ag_twin_state(memory)
        ctypes.memmove(state, bytes(start), len(start))
        piece = _PIECE[encoding]
        room = elements * 4 if encoding == F32 else elements + 4 * -(-elements // piece)
        delta = ctypes.create_string_buffer(room)
        kind = ENCODINGS[encoding]
        numbers = (
            number,
            work.steps,
            work.n,
            work.rate,
            work.mu,
            work.seed,
            local_buffers,
            kind,
            piece,
            seed,
        )
        done = _Done()
        status = self._library.ag_twin_train(
            memory,
            bytes(start),
            self._sets[k],
            len(self._sets[k]),
            ctypes.byref(_Work(*numbers)),
            ctypes.byref(done),
            delta,
        )
        self._check(status, f"round {number}")
        if not self._keeps_nothing:
            self._states[k] = ctypes.string_at(state, len(start))
        loss = done.loss / done.steps if done.steps else math.nan
        return Report(
            k,
            done.samples,
            Local(done.steps, done.examples, loss),
            _decoded(delta.raw, elements, encoding, piece),
        )

    def _memory(self) -> Any:
        """A model's memory, aligned as its struct is. All its bits are set: on a board they are not zero at first."""
        memory = (ctypes.c_uint64 * (self._library.ag_twin_memory_bytes() // 8 + 1))()
        ctypes.memset(memory, 0xFF, ctypes.sizeof(memory))
        return memory

    def _check(self, status: int, what: str) -> None:
        if status:
            raise DeviceError(f"{self.program.name}: {what}", status)


def _library(program: Program, opt: str) -> ctypes.CDLL:
    """The model, its interface to the link, and the code of rounds."""
    runtime, support = installation.runtime(), installation.boards() / "support"
    own = [runtime / f"ag_{name}.c" for name in _RUNTIME]
    own += [support / "twin" / "ag_twin.c", support / "twin" / "ag_twin.h", support / "host" / "system.c"]
    files = {
        **emit(program),
        f"{program.name}_link.c": link_source(program),
        **{p.name: p.read_text() for p in own},
    }
    library = Compiler(find_compiler(), opt).library(files, program.backends, program.kernels)
    library.ag_twin_memory_bytes.restype = library.ag_round_sample.restype = ctypes.c_uint32
    library.ag_twin_state.restype = ctypes.c_void_p
    library.ag_twin_train.argtypes = [
        *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32),
        *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
    ]
    return library


def _decoded(data: bytes, elements: int, encoding: str, piece: int) -> Vector:
    """The numbers of a difference in pieces."""
    if encoding == F32:
        return np.frombuffer(data, "<f4")
    found, at = np.empty(elements, np.float32), 0
    for first in range(0, elements, piece):
        count = min(piece, elements - first)
        scale = np.frombuffer(data, "<f4", 1, at)
        found[first : first + count] = np.frombuffer(data, np.int8, count, at + 4).astype(np.float32) * scale
        at += 4 + count
    return found
