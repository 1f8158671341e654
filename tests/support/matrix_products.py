"""Products of matrices and vectors for tests of kernels: shapes of operands, and results in float64."""

import numpy as np


def shapes_of(name, m, n, k):
    """Stored shape of each operand of a kernel, by parameter name."""
    if name.startswith("gemm"):
        a, b = name[5:7]
        return {"a": (m, k) if a == "n" else (k, m), "b": (k, n) if b == "n" else (n, k), "c": (m, n)}
    if name == "gemv_f32":
        return {"a": (m, n), "x": (1, n), "y": (1, m)}
    return {
        "gemv_t_f32": {"a": (m, n), "x": (1, m), "y": (1, n)},
        "ger_f32": {"a": (m, n), "x": (1, m), "y": (1, n)},
    }[name]


def product_of(name, v):
    """The sum that alpha scales, and the sum of its terms' magnitudes, in float64; `v` holds the operands."""
    f = {key: value.astype(np.float64) for key, value in v.items()}
    if name.startswith("gemm"):
        left = f["a"] if name[5] == "n" else f["a"].T
        right = f["b"] if name[6] == "n" else f["b"].T
    elif name == "ger_f32":
        left, right = f["x"].T, f["y"]
    else:
        left, right = f["x"], f["a"].T if name == "gemv_f32" else f["a"]
    return left @ right, np.abs(left) @ np.abs(right), left.shape[1]
