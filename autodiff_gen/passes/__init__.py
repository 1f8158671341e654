"""The pipeline: one list, read top to bottom; each pass is one Graph -> Graph rewrite in a file of its own.

Differentiation and the optimizer come before it, when `Model` builds its entries. `verify` runs after each
pass, and `--dump DIR` writes the graph after each as text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..ir import Graph
from ..verify import verify
from .call_column_sums import call_column_sums
from .cancel_layouts import cancel_layouts
from .common_values import common_values
from .drop_unread import drop_unread
from .fold_constants import fold_constants
from .fuse_elementwise import fuse_elementwise
from .fuse_updates import fuse_updates
from .inline_products import inline_products
from .join_windows import join_windows
from .own_bytes import own_bytes
from .pool_convolutions import pool_convolutions
from .prove_updates import prove_updates
from .redraw import redraw
from .sink_windows import sink_windows
from .specialise import specialise

Pass = Callable[[Graph], Graph]

PIPELINE: tuple[Pass, ...] = (
    specialise,  # evaluation, where training has not been settled before
    fold_constants,  # constants, x * 1, broadcasts that happen anyway
    common_values,  # the same op on the same operands once
    join_windows,  # gradients of several parts of one value are assembled, not added up
    sink_windows,  # parts of an elementwise value are computed where they are used
    drop_unread,  # stacks of a scan that nothing reads
    redraw,  # masks are drawn in the order in which they are read
    cancel_layouts,  # transposes move onto the operands of contractions
    pool_convolutions,  # a convolution and the pooling of its result, in one kernel
    inline_products,  # tiny products join the loops around them
    call_column_sums,  # sums of what lies in memory anyway, such as gradients of biases
    fuse_updates,  # W - lr * (a . b) becomes one contraction that accumulates into W
    prove_updates,  # what must be finite for the new states to be so
    own_bytes,  # copies where a view cannot serve, or an old state is still read
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
            (dump / f"{graph.name}.{k}.{step.__name__}.txt").write_text(str(graph))
    return graph
