"""Boards of the link in this process, tests/c/round_board.c: rounds of federated training with flash in RAM."""

from __future__ import annotations

import ctypes
import random
import zlib

import numpy as np
from c_build import KERNELS, LINK, shared_library
from checkout import C
from simulated_line import SimulatedLine

from autodiff_gen.codegen.board_link_source import link_source
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.datasets.samples import SampleSet
from autodiff_gen.device.board import Board
from autodiff_gen.device.frames import Decoder
from autodiff_gen.device.link import Link
from autodiff_gen.kernels import registry

REF = ("ref",)
FLAGS = ("-O0", "-ffp-contract=off", "-fsanitize=undefined", "-fno-sanitize-recover=all")


class Library:
    """A model, compiled with the link."""

    def __init__(self, model, folder, more_flags=()):
        self.program = compile_model(model, "net", REF)
        for file, text in {**emit(self.program), "net_link.c": link_source(self.program)}.items():
            (folder / file).write_text(text)
        kernels = [s.path for s in registry.load(REF).sources(self.program.kernels)]
        own = [folder / f"net{part}.c" for part in ("", "_params", "_link")]
        flags = (*FLAGS, *more_flags, f"-I{folder}", f"-I{KERNELS}", "-Wl,--wrap=ag_noise")
        self.c = shared_library("gcc", [*own, *kernels, *LINK, C / "round_board.c"], folder / "net.so", flags)
        self.c.board_new.restype = self.c.board_replies.restype = self.c.board_state.restype = ctypes.c_void_p
        self.c.ag_round_sample.restype = ctypes.c_uint32
        self.c.ag_noise.restype = ctypes.c_float

    def entropy(self, seed):
        """The 32 random bytes of all boards of this library from now on; None: there is no source of them."""
        self._seed = seed and ctypes.create_string_buffer(seed, 32)
        self.c.board_entropy(self._seed)


class Twin:
    """One board: `samples` in memory, flash of `slots` slots. Flash keeps its contents over `start`."""

    def __init__(self, library, samples, slots=2, slot_bytes=0):
        self.c, self.state_bytes = library.c, library.program.state_bytes
        self.set = samples.to_bytes() if isinstance(samples, SampleSet) else samples
        slot_bytes = slot_bytes or 2 * (library.program.state_bytes + 128)
        self.at = ctypes.c_void_p(self.c.board_new(self.set, len(self.set), slots, slot_bytes))
        self.start()

    def start(self):
        return self.c.board_start(self.at)

    def cut(self, after, torn=0):
        self.c.board_cut(self.at, after, torn)

    @property
    def operations(self):
        return self.c.board_operations(self.at)

    def state(self):
        """The state in the board's memory, as words that may be changed."""
        words = ctypes.c_uint32 * (self.state_bytes // 4)
        return np.frombuffer(words.from_address(self.c.board_state(self.at)), np.uint32)

    def receive(self, data):
        size = self.c.board_receive(self.at, data, len(data))
        return ctypes.string_at(self.c.board_replies(self.at), size)

    def __del__(self):
        self.c.board_delete(self.at)


class TwinPeer:
    """A twin as the peer of a simulated line; `accident()` is called for each frame, and may restart the twin or send
    it frames of before."""

    def __init__(self, twin, accident=lambda peer: None):
        self.twin, self.accident = twin, accident
        self.heard = []

    def reply(self, frame):
        self.heard = [*self.heard[-30:], frame.encode()]
        self.accident(self)
        replies = Decoder().feed(self.twin.receive(frame.encode()))
        return replies[0] if replies else None


def connected(library, twin, accident=lambda peer: None, lost=lambda: False):
    """A Board over a simulated line to the twin."""
    line = SimulatedLine(TwinPeer(twin, accident), lost=lost)
    return Board(library.program, Link(line, patience=100, now=line.now))


def accidents(seed, restarts=0.0, replays=0.0, losses=0.0):
    """(accident, lost) by chance."""
    chance = random.Random(seed)

    def accident(peer):
        if chance.random() < restarts:
            peer.twin.start()
        while chance.random() < replays:
            peer.twin.receive(chance.choice(peer.heard[:-1] or [b"\0"]))

    return accident, lambda: chance.random() < losses


def checksum(arrays):
    """CRC-32 of all arrays, bit by bit."""
    crc = 0
    for name in sorted(arrays):
        crc = zlib.crc32(np.ascontiguousarray(arrays[name]).tobytes(), crc)
    return crc
