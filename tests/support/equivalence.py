"""What every pass must keep."""

from __future__ import annotations

import numpy as np
from random_functions import Case, close

from autodiff_gen import passes
from autodiff_gen.ir.verifier import verify


def preserves(case: Case) -> None:
    """Each pass keeps the value of every root, to rounding, and the verifier's rules."""
    graph = case.graph
    before = [case.values(n) for n in case.batches]
    for step in passes.PIPELINE:
        graph = step(graph)
        verify(graph)
        for n, reference in zip(case.batches, before, strict=True):
            values = case.values(n, graph=graph)
            if graph.proof is not None:
                assert np.isfinite(values.pop()), f"seed {case.seed}: no proof at n = {n}\n{case.graph}"
            for after, root in zip(values, reference, strict=True):
                assert close(after, root, 0.1), (
                    f"seed {case.seed}: {step.__name__} changes a value at n = {n}\n{case.graph}"
                )
