"""Host twins: many boards of one model in this process. Each trains as `runtime/ag_round.c` does on a board, by the C
of the model, bit for bit. Twins share a memory for each thread; between rounds each twin keeps only the states
that are not parameters."""

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

from ..codegen.files import emit
from ..codegen.link import link_source
from ..codegen.program import Program, Slot
from ..codegen.shared_part import SharedRun, shared_part
from ..datasets.samples import sample_count
from ..device.differences import Encoding, Mask
from ..device.errors import DeviceError
from ..device.frames import PAYLOAD
from ..device.rounds import Evaluation, Local, shared_slots, stored
from ..host.compiler import Compiler, find_compiler
from ..targets import installation
from .members import Failure, Report
from .order import Order

_RUNTIME = ("round", "round_shared", "round_delta", "round_samples", "noise", "gradients")
_NEEDED = ("link_model", "store", "store_records", "store_notes", "samples", "console", "format")  # by these
_SEED_BYTES = 32  # of noise


class _Work(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("round", "steps", "n")),
        *((name, ctypes.c_float) for name in ("lr", "mu")),
        *((name, ctypes.c_uint32) for name in ("seed", "local_buffers", "encoding", "piece", "delta_seed")),
        *((name, ctypes.c_uint32) for name in ("top", "last_top", "evaluates")),
        *((name, ctypes.c_float) for name in ("clip", "noise")),
        ("noise_seed", ctypes.c_uint8 * _SEED_BYTES),
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


class Twins:
    """The boards from 0 on. `sets`: the samples of each board, as the contents of samples.bin. `jobs`: threads.
    `entropy`: random bytes that seed noise. `payload`: the largest payload of a board's link, on which the pieces of
    differences depend. Raises ToolError."""

    def __init__(
        self,
        program: Program,
        sets: Sequence[bytes],
        jobs: int = 0,
        opt: str = "",
        entropy: Callable[[int], bytes] = os.urandom,
        payload: Callable[[int], int] = lambda board: PAYLOAD,
    ) -> None:
        self.first, self.program = 0, program
        self._sets, self._entropy, self._payload = sets, entropy, payload
        self._library = _library(program, opt)
        self._runs = shared_part(program)
        self._jobs = jobs or len(os.sched_getaffinity(0))
        self._free = SimpleQueue[Any]()  # memories that no board uses now
        self._kept: dict[int, _Kept] = {}  # of boards that have trained
        self._seeds: dict[int, tuple[int, bytes]] = {}  # of the noise of a board, and the round
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
    def kept_bytes(self) -> int:
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

    def round(self, order: Order, boards: Sequence[int]) -> Iterator[Report | Failure]:
        """See Members."""
        settings, local_buffers = order.settings, order.settings.local_buffers
        how, elements = Encoding.of(settings.encoding), sum(r.count for r in self._own_runs(local_buffers))
        pieces_of = {room: how.pieces(elements, room) for room in {self._payload(k) for k in boards}}
        mask = settings.mask
        masking = (0.0, 0.0) if mask is None else (mask.clip, mask.noise)
        weights = stored(self.slots(local_buffers), order.weights)

        def one(k: int) -> Report | Failure:
            own, pieces = order.work(k).on(self.samples(k), self.program.batch), pieces_of[self._payload(k)]
            training = (order.number, own.steps, own.n, own.rate, own.mu, own.seed)
            sending = (local_buffers, how.kind, pieces[0].count, order.seed(k), pieces[0].top, pieces[-1].top)
            noise = self._noise_seed(k, order.number, mask)
            request = _Work(*training, *sending, settings.evaluate, *masking, noise)
            memory = self._free.get()
            try:
                report, data = self._train(memory, k, weights, request, sum(map(how.size, pieces)))
                parts, at = [], 0
                for piece in pieces:
                    parts.append(how.decoded(piece, data[at : at + how.size(piece)]))
                    at += how.size(piece)
                return replace(report, delta=np.concatenate(parts))
            except DeviceError as error:
                return Failure(k, str(error))
            finally:
                self._free.put(memory)

        with ThreadPoolExecutor(self._jobs) as pool:
            yield from pool.map(one, boards)

    def _own_runs(self, local_buffers: bool) -> list[SharedRun]:
        return [run for run in self._runs if not (local_buffers and run.is_buffer)]

    def _noise_seed(self, k: int, number: int, mask: Mask | None) -> Any:
        """A seed for each round, so that a repeated round has the same noise."""
        if mask is None or not mask.noise:
            return (ctypes.c_uint8 * _SEED_BYTES)()
        if k not in self._seeds or self._seeds[k][0] != number:
            self._seeds[k] = number, self._entropy(_SEED_BYTES)
        return (ctypes.c_uint8 * _SEED_BYTES)(*self._seeds[k][1])

    def _train(self, memory: Any, k: int, weights: bytes, work: _Work, size: int) -> tuple[Report, bytes]:
        """The report without its difference, and the `size` bytes of the difference."""
        start, keeps = bytearray(self._initial), self.keeps(bool(work.local_buffers))
        if k in self._kept:
            _fill(start, self._own, self._kept[k].start(work.round))
        before = self._own_part(start)
        shared = [(run.offset, run.end) for run in self._own_runs(work.local_buffers)]
        _fill(start, shared, weights)
        state = self._library.ag_twin_state(memory)
        ctypes.memmove(state, bytes(start), len(start))
        delta, done, own = ctypes.create_string_buffer(size), _Done(), self._sets[k]
        status = self._library.ag_twin_train(
            memory, bytes(start), own, len(own), ctypes.byref(work), ctypes.byref(done), delta
        )
        if keeps:  # also after a step that the model rejects, as on a board
            self._kept[k] = _Kept(work.round, before, self._own_part(ctypes.string_at(state, len(start))))
        self._check(status, f"round {work.round}")
        loss = done.loss / done.steps if done.steps else math.nan
        local = Local(done.steps, done.examples, loss)
        tested = Evaluation(done.tested, done.labels, done.right) if work.evaluates else None
        return Report(k, done.samples, local, np.empty(0, np.float32), tested), delta.raw

    def _own_part(self, state: bytes | bytearray) -> bytes:
        return b"".join(state[begin:end] for begin, end in self._own)

    def _memory(self) -> Any:
        """A model's memory, aligned as its struct is. All its bits are set: on a board they are not zero at first."""
        memory = (ctypes.c_uint64 * (self._library.ag_twin_memory_bytes() // 8 + 1))()
        ctypes.memset(memory, 0xFF, ctypes.sizeof(memory))
        return memory

    def _check(self, status: int, what: str) -> None:
        if status:
            raise DeviceError(f"{self.program.name}: {what}", status)


def _fill(state: bytearray, ranges: Sequence[tuple[int, int]], data: bytes) -> None:
    """Write bytes to ranges of a state, one after the other."""
    at = 0
    for begin, end in ranges:
        state[begin:end] = data[at : at + end - begin]
        at += end - begin


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
