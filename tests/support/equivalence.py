"""What every pass must keep."""

from __future__ import annotations

import numpy as np
from graph_stages import stages
from random_functions import Case, close


def preserves(case: Case) -> None:
    """Each pass keeps the value of every root, to rounding, and the verifier's rules."""
    before = [case.values(n) for n in case.batches]
    for name, graph in stages(case.graph):
        for n, reference in zip(case.batches, before, strict=True):
            values = case.values(n, graph=graph)
            if graph.bound is not None:
                assert np.isfinite(values.pop()), f"seed {case.seed}: no bound at n = {n}\n{case.graph}"
            for after, root in zip(values, reference, strict=True):
                assert close(after, root, 0.1), (
                    f"seed {case.seed}: {name} changes a value at n = {n}\n{case.graph}"
                )
