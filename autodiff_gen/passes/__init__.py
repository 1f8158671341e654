"""The pipeline: one list, read top to bottom; each pass is one Graph -> Graph rewrite in a file of its own.

Differentiation and the optimizer come before it, when `Model` builds its entries. `verify` runs after each
pass, and `--dump DIR` writes the graph after each as text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..ir.graph import Graph
from ..ir.printer import show
from ..ir.verifier import verify
from .copy_insertion import copy_insertion
from .cse import cse
from .finite_guard import finite_guard
from .fold_constants import fold_constants
from .fuse_conv_pool import fuse_conv_pool
from .fuse_elementwise import fuse_elementwise
from .fuse_optimizer import fuse_optimizer
from .inline_small_matmul import inline_small_matmul
from .merge_slice_gradients import merge_slice_gradients
from .region_dce import region_dce
from .rematerialize_random import rematerialize_random
from .resolve_mode import resolve_mode
from .select_column_sums import select_column_sums
from .slice_propagation import slice_propagation
from .transpose_elimination import transpose_elimination

Pass = Callable[[Graph], Graph]

PIPELINE: tuple[Pass, ...] = (
    resolve_mode,  # evaluation, where training has not been settled before
    fold_constants,  # constants, x * 1, broadcasts that happen anyway
    cse,  # the same op on the same operands once
    merge_slice_gradients,  # gradients of several parts of one value are assembled, not added up
    slice_propagation,  # parts of an elementwise value are computed where they are used
    region_dce,  # stacks of a scan that nothing reads
    rematerialize_random,  # masks are drawn in the order in which they are read
    transpose_elimination,  # transposes move onto the operands of contractions
    fuse_conv_pool,  # a convolution and the pooling of its result, in one kernel
    inline_small_matmul,  # tiny products join the loops around them
    select_column_sums,  # sums of what lies in memory anyway, such as gradients of biases
    fuse_optimizer,  # W - lr * (a . b) becomes one contraction that accumulates into W
    finite_guard,  # what must be finite for the new states to be so
    copy_insertion,  # copies where a view cannot serve, or an old state is still read
    fuse_elementwise,  # everything between the contractions becomes loops
)


def run(graph: Graph, dump: Path | None = None, vectors: int = 0) -> Graph:
    """The graph after all passes; `vectors` as in fuse_elementwise; with `dump`, each stage is written to
    dump/<entry>.<k>.<pass>.txt."""
    verify(graph)
    for k, step in enumerate(PIPELINE):
        graph = fuse_elementwise(graph, vectors) if step is fuse_elementwise else step(graph)
        verify(graph)
        if dump is not None:
            dump.mkdir(parents=True, exist_ok=True)
            (dump / f"{graph.name}.{k}.{step.__name__}.txt").write_text(show(graph))
    return graph
