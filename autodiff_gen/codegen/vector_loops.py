"""How long the loops of generated C are in which functions of ag_math.h are called."""

from __future__ import annotations

import re

from ..kernels.contract import FUNCTIONS

VECTOR = 16  # turns from which vectors pay on any core
_FOR = re.compile(r"( *)for \(")
_TURNS = re.compile(r"for \(int32_t (\w+) = 0; \1 < (?:(\d+)|(?:(\d+) \* )?n); \1\+\+\) \{$")
_CALL = re.compile(rf"\bag_(?:{'|'.join(FUNCTIONS)})\(")


def all_short(source: str, batch: int, vectors: int) -> bool:
    """Whether functions are called, and each in a loop of fewer turns than `vectors`, or in one around other loops,
    which compilers do not vectorise: elsewhere ag_math.h keeps its functions free of branches. `batch`: the most that a
    number of turns known at run time can be.
    """
    open_loops: list[_Loop] = []
    called = False
    for line in source.splitlines():
        if found := _FOR.match(line):
            for outer in open_loops:
                outer.is_innermost = False
            open_loops.append(_Loop(len(found[1]), _turns(line, batch, vectors)))
        elif open_loops and line.startswith(" " * open_loops[-1].indent + "}"):
            loop = open_loops.pop()
            if loop.calls and loop.is_innermost and loop.turns >= vectors:
                return False
        elif _CALL.search(line):
            called = True
            if open_loops:
                open_loops[-1].calls = True
    return called


class _Loop:
    def __init__(self, indent: int, turns: int) -> None:
        self.indent, self.turns = indent, turns
        self.is_innermost, self.calls = True, False


def _turns(line: str, batch: int, vectors: int) -> int:
    found = _TURNS.search(line)
    if found is None:
        return vectors
    return int(found[2]) if found[2] else int(found[3] or 1) * batch
