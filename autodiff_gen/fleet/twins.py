"""Host twins: many boards of one model in this process. Each trains as `runtime/ag_round.c` does on a board, by the C
of the model, bit for bit. Each thread has one memory, in which twins train in sequence; between rounds a twin keeps
only the states that are not parameters."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any

import numpy as np

from ..codegen.board_link_layout import link_layout
from ..codegen.board_link_source import link_source
from ..codegen.files import emit
from ..codegen.program import Program, Slot
from ..codegen.shared_part import SharedRun, shared_part
from ..datasets.samples import sample_count
from ..device.differences import Encoding
from ..device.errors import DeviceError
from ..device.frames import PAYLOAD
from ..device.rounds import Evaluation, LocalTraining, shared_slots, stored
from ..host.compiler import Compiler, find_compiler
from ..targets import installation
from .board_group import BoardResult, Failure
from .entropy import ENTROPY_BYTES
from .noise_seeds import NoiseSeeds, noise_seeds
from .round_request import RoundRequest

_RUNTIME = ("round", "round_shared", "round_delta", "round_samples", "noise", "gradients")
_NEEDED = ("link_model", "store", "store_records", "store_notes", "samples", "console", "format")  # by these
_Ranges = Sequence[tuple[int, int]]  # of bytes in a state


class _Work(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("round", "steps", "n")),
        *((name, ctypes.c_float) for name in ("lr", "mu")),
        *((name, ctypes.c_uint32) for name in ("seed", "local_buffers", "encoding", "piece", "delta_seed")),
        *((name, ctypes.c_uint32) for name in ("top", "last_top", "evaluates")),
        *((name, ctypes.c_float) for name in ("clip", "noise")),
        ("noise_seed", ctypes.c_uint8 * ENTROPY_BYTES),
    ]


class _Done(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("samples", "steps", "examples")),
        ("loss", ctypes.c_float),
        *((name, ctypes.c_uint32) for name in ("tested", "labels", "right")),
    ]


@dataclass(frozen=True)
class _Kept:
    """The states of a board that are not parameters. before: at the start of its last round, used if the round is
    repeated. after: at its end."""

    round: int
    before: bytes
    after: bytes

    def start(self, round: int) -> bytes:
        return self.before if round == self.round else self.after


class _Start:
    """The states of boards at the start of a round: `weights` in the ranges `shared`; the other states are as they were
    after the last round, or as in `initial`."""

    def __init__(self, initial: bytes, own: _Ranges, shared: _Ranges, weights: bytes) -> None:
        self._own, self._shared, self._weights = own, shared, weights
        self._first = _filled(initial, shared, weights)  # of a board that has not trained

    def state(self, kept: bytes | None) -> bytes:
        """The state of a board. kept: the state that the board kept after its last round, None before the first."""
        if kept is None:
            return self._first
        return _filled(_filled(self._first, self._own, kept), self._shared, self._weights)


class Twins:
    """The boards from 0 on. `sets`: the samples of each board, as the contents of samples.bin. `jobs`: threads.
    `seeds`: the seeds of noise, by board and round. `payload`: the largest payload of a board's link, on which the
    pieces of differences depend. Raises ToolError."""

    def __init__(
        self,
        program: Program,
        sets: Sequence[bytes],
        jobs: int = 0,
        opt: str = "",
        seeds: NoiseSeeds | None = None,
        payload: Callable[[int], int] = lambda board: PAYLOAD,
    ) -> None:
        self.first, self.program, self.layout = 0, program, link_layout(program)
        self._sets, self._payload = sets, payload
        self._seeds = seeds or noise_seeds(os.urandom(ENTROPY_BYTES))
        self._library = _library(program, opt)
        self._runs = shared_part(program)
        self._jobs = jobs or len(os.sched_getaffinity(0))
        self._free = SimpleQueue[Any]()  # memories that no board uses now
        self._kept: dict[int, _Kept] = {}  # of boards that have trained
        start = self._memory()
        self._check(self._library.ag_twin_init(start, 0), "init")
        self._initial = ctypes.string_at(self._library.ag_twin_state(start), program.state_bytes)
        for memory in (start, *(self._memory() for _ in range(self._jobs - 1))):
            self._free.put(memory)
        edges = [0, *(x for run in self._own_runs(True) for x in (run.offset, run.end)), program.state_bytes]
        self._own = list(zip(edges[::2], edges[1::2], strict=True))  # ranges without parameters

    def __len__(self) -> int:
        return len(self._sets)

    def samples(self, k: int) -> int:
        """How many samples a board has to train on."""
        return sample_count(self._sets[k])

    @property
    def local_state_bytes(self) -> int:
        """The bytes of a board's states that are not parameters."""
        return sum(end - begin for begin, end in self._own)

    def kept(self) -> dict[int, bytes]:
        """The states of each board that has trained, without parameters, after its last round."""
        return {k: kept.after for k, kept in sorted(self._kept.items())}

    def keep(self, kept: Mapping[int, bytes]) -> None:
        """Set the states, without parameters, with which boards begin the next round."""
        self._kept = {k: _Kept(0, own, own) for k, own in kept.items()}

    def keeps(self, local_buffers: bool) -> bool:
        """Whether boards have states that a round does not exchange."""
        shared = sum(run.end - run.offset for run in self._own_runs(local_buffers))
        return shared < self.program.state_bytes

    def slots(self, local_buffers: bool) -> list[Slot]:
        """The states that a round exchanges."""
        return shared_slots(self.program, local_buffers)

    def sample(self, i: int, samples: int, seed: int, epoch: int) -> int:
        """The sample at place i of an epoch of a board with this number of samples."""
        return int(self._library.ag_round_sample(i, samples, seed, epoch))

    def round(self, order: RoundRequest, boards: Sequence[int]) -> Iterator[BoardResult | Failure]:
        """See Members."""
        settings, local_buffers = order.settings, order.settings.local_buffers
        how, elements = Encoding.of(settings.encoding), sum(r.count for r in self._own_runs(local_buffers))
        pieces_of = {room: how.pieces(elements, room) for room in {self._payload(k) for k in boards}}
        size_of = {room: sum(map(how.size, pieces)) for room, pieces in pieces_of.items()}
        mask = settings.mask
        masking = (0.0, 0.0) if mask is None else (mask.clip, mask.noise)
        shared = [(run.offset, run.end) for run in self._own_runs(local_buffers)]
        weights = stored(self.slots(local_buffers), order.weights)
        start = _Start(self._initial, self._own, shared, weights)

        def one(k: int) -> BoardResult | Failure:
            own, room = order.work(k).on(self.samples(k), self.layout.records), self._payload(k)
            first, last = pieces_of[room][0], pieces_of[room][-1]
            training = (order.number, own.steps, own.n, own.rate, own.mu, own.seed)
            sending = (local_buffers, how.kind, first.count, order.seed(k), first.top, last.top)
            seed = self._seeds(k, order.number) if mask is not None and mask.noise else bytes(ENTROPY_BYTES)
            noise = (ctypes.c_uint8 * ENTROPY_BYTES)(*seed)
            request = _Work(*training, *sending, settings.evaluate, *masking, noise)
            memory = self._free.get()
            try:
                report, data = self._train(memory, k, start, request, size_of[room])
                return replace(report, delta=how.decoded(pieces_of[room], data))
            except DeviceError as error:
                return Failure(k, str(error))
            finally:
                self._free.put(memory)

        with ThreadPoolExecutor(self._jobs) as pool:
            yield from pool.map(one, boards)

    def _own_runs(self, local_buffers: bool) -> list[SharedRun]:
        return [run for run in self._runs if not (local_buffers and run.is_buffer)]

    def _train(self, memory: Any, k: int, start: _Start, work: _Work, size: int) -> tuple[BoardResult, Any]:
        """The report without its difference, and the `size` bytes of the difference, uint8."""
        before = self._kept[k].start(work.round) if k in self._kept else None
        delta, done, own, state = np.empty(size, np.uint8), _Done(), self._sets[k], start.state(before)
        status = self._library.ag_twin_train(
            memory, state, own, len(own), ctypes.byref(work), ctypes.byref(done), delta.ctypes.data
        )
        if self.keeps(bool(work.local_buffers)):  # also after a step that the model rejects, as on a board
            after = ctypes.string_at(self._library.ag_twin_state(memory), len(state))
            before = _parts(self._initial, self._own) if before is None else before
            self._kept[k] = _Kept(work.round, before, _parts(after, self._own))
        self._check(status, f"round {work.round}")
        loss = done.loss / done.steps if done.steps else math.nan
        local = LocalTraining(done.steps, done.examples, loss)
        tested = Evaluation(done.tested, done.labels, done.right) if work.evaluates else None
        return BoardResult(k, done.samples, local, np.empty(0, np.float32), tested), delta

    def _memory(self) -> Any:
        """A model's memory, aligned as its struct is. All its bits are set: on a board they are not zero at first."""
        memory = (ctypes.c_uint64 * (self._library.ag_twin_memory_bytes() // 8 + 1))()
        ctypes.memset(memory, 0xFF, ctypes.sizeof(memory))
        return memory

    def _check(self, status: int, what: str) -> None:
        if status:
            raise DeviceError(f"{self.program.name}: {what}", status)


def _parts(state: bytes, ranges: _Ranges) -> bytes:
    """The bytes of ranges of a state, one after the other."""
    return b"".join(state[begin:end] for begin, end in ranges)


def _filled(state: bytes, ranges: _Ranges, data: bytes) -> bytes:
    """A state with other bytes in ranges: the inverse of _parts."""
    filled, at = bytearray(state), 0
    for begin, end in ranges:
        filled[begin:end] = data[at : at + end - begin]
        at += end - begin
    return bytes(filled)


def _library(program: Program, opt: str) -> ctypes.CDLL:
    """The model, its interface to the link, and the code of rounds."""
    runtime, support = installation.runtime(), installation.boards() / "support"
    own = [runtime / f"ag_{name}.c" for name in (*_RUNTIME, *_NEEDED)]
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
