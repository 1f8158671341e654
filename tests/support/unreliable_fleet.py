"""Boards of this process on simulated lines that are cut, and whose messages are lost, come twice, or in another order;
boards lose their power at any moment, and have it again later or never."""

from __future__ import annotations

import random

from round_board import Twin
from simulated_line import SimulatedLine

from autodiff_gen.device.board import Board
from autodiff_gen.device.frames import HELLO, Decoder
from autodiff_gen.device.link import Link
from autodiff_gen.fleet.linked import LinkedBoard

ACCIDENTS = ("cut", "gone", "restart", "power cut", "twice", "reordered")


class UnreliableBoard:
    """A board, and the other end of its line, by one seed. After it has been connected once, an accident happens in one
    of `calm` messages: `happened` are their kinds."""

    def __init__(self, library, samples, seed, calm=10):
        self.library, self.twin = library, Twin(library, samples)
        self.chance, self.calm = random.Random(seed), calm
        self.heard, self.held, self.happened = [], [], []
        self.silent = 0  # frames until the line is whole again
        self.cut = 0  # operations of the flash until the power fails
        self.is_known = False

    def line(self, name):
        return LinkedBoard(name, "twin", self._open)

    def _open(self):
        line = SimulatedLine(self, lost=self._lost)
        board = Board(self.library.program, Link(line, patience=2, now=line.now))
        self.is_known = True
        return board

    def _lost(self):
        """Whether a frame is lost, in either direction."""
        if self.silent:
            self.silent -= 1
            return True
        return self.is_known and self.chance.random() < 0.03

    def reply(self, frame):
        message, late, self.held = frame.encode(), self.held, []
        kind = self._accident() if self.is_known and frame.request != HELLO else ""
        self.heard = [*self.heard[-20:], message]
        if kind == "reordered":
            self.held = [message]
            return None
        replies = Decoder().feed(self.twin.receive(message))
        again = self.chance.choices(self.heard, k=2) if kind == "twice" else []
        for other in (*late, *again):
            self.twin.receive(other)
        if self.cut and self.twin.operations >= self.cut:
            self._restart()
            return None
        return replies[0] if replies else None

    def _accident(self):
        if self.chance.random() * self.calm > 1:
            return ""
        kind = self.chance.choice(ACCIDENTS)
        self.happened.append(kind)
        if kind == "cut":
            self.silent = self.chance.randrange(1, 30)
        elif kind in ("gone", "restart"):
            self.silent = 0 if kind == "restart" else self.chance.choice((60, 1 << 30))
            self._restart()
        elif kind == "power cut":
            self.cut = self.chance.randrange(1, 25)
            self.twin.cut(self.cut, self.chance.randrange(100))
        return kind

    def _restart(self):
        self.cut = 0
        self.twin.cut(0)
        self.twin.start()
