"""The cost of operations on a core: the section [cost] of a board's file, which `./scons board=B bench-costs` measures.
Stdlib only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

BLOCK, WIDE = 4, 8  # floats that loops load or store by one instruction, where a board has block_moves


@dataclass(frozen=True)
class KernelCost:
    """Instructions of a kernel: `call` for its call with the arguments, `result` for each element of the result, `term`
    for each multiply-accumulate or addition. A kernel computes tiles of `tile` elements along each extent of the
    result, and as much for a tile that is not complete; where an extent is shorter than a tile each term takes
    `edge`."""

    call: float
    result: float
    term: float
    edge: float
    tile: int

    def total(self, extents: Sequence[int], terms: int) -> float:
        """The cost of one call that computes a result of these extents, each element from so many terms."""
        results = math.prod(extents)
        covered = covered_by_tiles(extents, self.tile)
        computed = covered * self.term if covered else results * self.edge
        return self.call + results * self.result + terms * computed


def covered_by_tiles(extents: Sequence[int], tile: int) -> int:
    """Elements of the tiles that a kernel computes for a result; 0 where an extent is shorter than a tile."""
    return math.prod(-(-e // tile) * tile for e in extents) if min(extents) >= tile else 0


@dataclass(frozen=True)
class Cache:
    """The largest cache that a core does not share, of so many bytes. miss: the cost of a byte outside the cache;
    packing: the cost of an element of a product's second factor, which the kernel copies in each call; load: the cost
    of an element of a matrix that is multiplied by a vector, in addition to its terms."""

    bytes: int
    miss: float
    packing: float
    load: float


@dataclass(frozen=True)
class CostTable:
    """Executed instructions of generated loops and of kernels; any unit that is the same for all of them will do, as
    they are only compared with each other.

    load, store, arithmetic: of one float; loop: one iteration of a loop; mac: one multiply-accumulate of a product
    in loops, without its loads; code: a loop replaces a kernel's call if the call takes this many times the loop's
    instructions; arena: the value of a float of the arena; memory: how many percent of the time an arena that is one
    percent smaller may take. gemm, gemv, column_sums, axpby: the kernels of the board's backends. registers: floats
    that stay in registers through a loop, in all vectors together; vector: floats in a vector of generated loops, 1
    where they are not vectorised; vector_loop: iterations from which loops that call exp, tanh, ... are faster in
    vectors, 0 where they never are. cache: the cache for which a batch is divided, None where it is not divided.
    kernels: costs by symbol of kernels that serve the same calls, where the cheapest is called. calls: costs by symbol
    of the parts of a call (kernels/call_parts.py), for estimates of time. cycles: of an instruction, in the mean of a
    training step, by an estimate; 0 where it is not known. block_moves: whether generated loops load and store blocks
    of floats by one instruction (lowering/loops/block_moves.py). finish: of an element of a result to which a kernel
    adds a bias and which it limits before it returns (an epilogue); 0 where kernels finish all results. limit: of a
    loop that limits one float.
    """

    load: float
    store: float
    arithmetic: float
    loop: float
    mac: float
    code: float
    arena: float
    memory: float
    registers: int
    vector: int
    vector_loop: int
    gemm: KernelCost
    gemv: KernelCost
    column_sums: KernelCost
    axpby: KernelCost
    kernels: Mapping[str, KernelCost] = field(default_factory=lambda: MappingProxyType({}))
    calls: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: MappingProxyType({}))
    cache: Cache | None = None
    cycles: float = 0.0
    block_moves: bool = False
    finish: float = 0.0
    limit: float = 0.0

    @property
    def alignment(self) -> int:
        """The bytes that the addresses of buffers are multiples of: a vector that one access reads crosses no cache
        line then."""
        return 4 * self.vector if self.vector_loop else 4
