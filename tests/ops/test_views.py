"""Layouts of views against NumPy's strides, and gemm calls against NumPy's matmul."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from autodiff_gen import functional as F  # noqa: F401  (fills the registry)
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.build import apply, make_input
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.kernel_call import KernelCall, Operand
from autodiff_gen.ir.node import Value
from autodiff_gen.ir.strides import Strided, dense
from autodiff_gen.ir.types import Dim, Type, bound, f32, planned
from autodiff_gen.ir.views import layout
from autodiff_gen.passes.calls.select_gemm import gemm_call
from autodiff_gen.passes.layout.copies import is_readable_by_gemm

BATCH = 3


def random_views(r: random.Random) -> tuple[Value, list[Value]]:
    """A dense value and the views of a chain over it."""
    n = Dim(1, BATCH) if r.random() < 0.5 else 2
    source = make_input("x", Type(f32, tuple(r.sample([n, 2, 3, 1], r.randint(1, 4)))))
    chain = [source]
    for _ in range(r.randint(1, 5)):
        v = chain[-1]
        kind = r.choice(("permute", "unit", "reshape", "reshape", "broadcast", "slice"))
        try:
            if kind == "permute":
                chain.append(apply("permute", v, dims=tuple(r.sample(range(v.ndim), v.ndim))))
            elif kind == "slice":
                taken = [d if isinstance(d, Dim) else r.randint(1, d) for d in v.shape]
                reversed_axes = [isinstance(d, int) and r.random() < 0.3 for d in v.shape]
                starts = tuple(t - 1 if back else 0 for t, back in zip(taken, reversed_axes, strict=True))
                steps = tuple(-1 if back else 1 for back in reversed_axes)
                chain.append(apply("slice", v, shape=tuple(taken), starts=starts, steps=steps))
            elif kind == "unit":
                shape = [d for d in v.shape if d != 1 or r.random() < 0.5]
                shape.insert(r.randint(0, len(shape)), 1)
                chain.append(apply("reshape", v, shape=tuple(shape)))
            elif kind == "reshape":
                k = r.randrange(max(v.ndim - 1, 1))
                merged = v.shape[k] * v.shape[k + 1] if v.ndim > 1 else v.shape[0]
                parts = r.choice([(merged,), (merged // 2, 2), (merged // 3, 3), (merged // 6, 3, 2)])
                chain.append(apply("reshape", v, shape=(*v.shape[:k], *parts, *v.shape[k + 2 :])))
            elif np.prod(planned(v.shape)) < 500:
                chain.append(
                    apply(
                        "broadcast_to",
                        v,
                        shape=(r.choice((1, 4)), *(r.choice((1, 5)) if d == 1 else d for d in v.shape)),
                    )
                )
        except ShapeError:  # the elements do not fill the shape, or the batch would have to move
            continue
    return source, chain


@pytest.mark.parametrize("block", range(8))
def test_views_are_stored_where_numpy_says(block: int) -> None:
    resolved = copies = 0
    for seed in range(block * 100, block * 100 + 100):
        source, chain = random_views(random.Random(seed))
        whole = np.arange(np.prod(planned(source.shape)), dtype="float32")
        for n in range(1, BATCH + 1):
            array = whole.reshape(planned(source.shape))[tuple(slice(e) for e in bound(source.shape, n))]
            for v in chain:
                at = layout(v)
                (expected,) = evaluate([v], {source: array}, n)
                if at is None:
                    copies += 1
                    continue
                resolved += 1
                strides = tuple(4 * s for s in at.strides)
                seen = as_strided(whole[at.offset :], bound(at.shape, n), strides, writeable=False)
                assert np.array_equal(seen, expected), f"seed {seed} n {n} {v} {at}"
                assert not at.dense or at.strides == dense(at.shape).strides or 1 in planned(at.shape)
    assert resolved > copies > 0


@pytest.mark.parametrize("block", range(4))
def test_a_copy_is_requested_only_where_numpy_copies(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        source, chain = random_views(random.Random(seed))
        if any(isinstance(d, Dim) for d in source.shape):
            continue
        array = np.arange(np.prod(planned(source.shape)), dtype="float32").reshape(planned(source.shape))
        at: Any = array
        for v in chain[1:]:
            at = v.node.op.ref(at, **v.node.attrs)
            moves = not np.shares_memory(at, array)
            assert moves == (layout(v) is None), f"seed {seed}"
            if moves:
                break


def test_the_batch_cannot_be_split_or_merged_inside() -> None:
    x = make_input("x", Type(f32, (Dim(1, 4), 3)))
    transposed = apply("permute", x, dims=(1, 0))
    assert apply("reshape", x, shape=(Dim(3, 4),)).shape == (Dim(3, 4),)
    with pytest.raises(ShapeError, match=r"reshape.*f32\[3,n\].*batch axis"):
        apply("reshape", transposed, shape=(Dim(3, 4),))


# gemm calls

LARGE = 4


def operand(rows: int, columns: int, stored: str, extra: int) -> Strided:
    """[rows, columns] over bytes that hold it row-major ("n") or transposed ("t"), each line with `extra` more."""
    if stored == "n":
        return Strided((rows, columns), (columns + extra, 1))
    return Strided((rows, columns), (1, rows + extra))


def matrix(memory: Any, at: Strided) -> Any:
    return as_strided(memory[at.offset :], planned(at.shape), tuple(8 * s for s in at.strides))


def interpreted(call: KernelCall, memory: dict[str, Any], c: Any) -> None:
    """The kernel as the contract defines it, on flat arrays; alpha 1, beta 0."""
    size = {k: planned((v,))[0] for k, v in call.sizes.items()}
    flat = {
        p: memory["ab"[role.index]] if isinstance(role, Operand) else c for p, role in call.pointers.items()
    }

    def rows(name: str, count: int, width: int, lead: int) -> Any:
        assert lead >= width, f"{call}: the leading dimension is less than a row"
        assert (count - 1) * lead + width <= flat[name].size, f"{call}: reads past {name}"
        return as_strided(flat[name], (count, width), (8 * lead, 8))

    m, n = size["m"], size["n"]
    if call.kernel == "ger_f32":
        rows("a", m, n, size["lda"])[...] = np.outer(flat["x"][:m], flat["y"][:n])
    elif call.kernel == "gemv_f32":
        flat["y"][:m] = rows("a", m, n, size["lda"]) @ flat["x"][:n]
    elif call.kernel == "gemv_t_f32":
        flat["y"][:n] = rows("a", m, n, size["lda"]).T @ flat["x"][:m]
    else:
        k = size["k"]
        ta, tb = call.kernel[5:7]
        a = rows("a", m, k, size["lda"]) if ta == "n" else rows("a", k, m, size["lda"]).T
        b = rows("b", k, n, size["ldb"]) if tb == "n" else rows("b", n, k, size["ldb"]).T
        rows("c", m, n, size["ldc"])[...] = a @ b


CASES = list(itertools.product((1, 2, 4), (1, 3, 4), (1, 2, 5), "nt", "nt", (0, 2), (0, 2)))


def test_calls_compute_the_product() -> None:
    numbers = np.random.default_rng(1)
    kernels = set()
    for m, k, n, stored_a, stored_b, extra_a, extra_b in CASES:
        a, b = operand(m, k, stored_a, extra_a), operand(k, n, stored_b, extra_b)
        memory = {name: numbers.uniform(size=64) for name in "ab"}
        call = gemm_call(a, b)
        kernels.add(call.kernel)
        c = np.full(m * n, np.nan)
        interpreted(call, memory, c)
        expected = matrix(memory["a"], a) @ matrix(memory["b"], b)
        assert np.allclose(c.reshape(m, n), expected), f"{m}x{k}x{n} {stored_a}{stored_b} {call}"
    assert {
        "ger_f32",
        "gemv_f32",
        "gemv_t_f32",
        "gemm_nn_f32",
        "gemm_nt_f32",
        "gemm_tn_f32",
        "gemm_tt_f32",
    } == kernels


def test_a_batch_of_one_at_run_time_still_computes_the_product() -> None:
    """The batch is not taken for a vector: the same call serves every n."""
    n = Dim(1, LARGE)
    call = gemm_call(Strided((n, 3), (3, 1)), Strided((3, 2), (2, 1)))
    assert call.kernel == "gemm_nn_f32"
    assert call.sizes["m"] == n
    assert gemm_call(Strided((3, n), (1, 3)), Strided((n, 2), (2, 1))).kernel == "gemm_tn_f32"
    assert gemm_call(Strided((1, 3), (3, 1)), Strided((3, n), (1, 3))).sizes == {"lda": 3, "m": n, "n": 3}


@pytest.mark.parametrize("shape", list(itertools.product((1, 2, 3, Dim(1, 3)), repeat=2)))
def test_kernels_read_what_is_said_to_be_readable(shape: tuple[Any, Any]) -> None:
    """Operands that count as readable go into calls that agree with NumPy; only broadcasts are copied."""
    numbers = np.random.default_rng(2)
    readable = 0
    rows, columns = shape
    for source in ((rows, columns), (1, columns), (rows, 1), (1, 1), (columns, rows), (), (rows, 2, columns)):
        x = make_input("x", Type(f32, source))
        if len(source) == 3:
            v = apply("permute", x, dims=(1, 0, 2))
        elif source == (columns, rows):
            v = apply("permute", x, dims=(1, 0))
        else:
            v = apply("broadcast_to", x, shape=(rows, columns))
        at = layout(v)
        assert at is not None
        if not is_readable_by_gemm(v):
            assert 0 in at.strides[-2:], f"{source} -> {shape}"
            continue
        readable += 1
        a = Strided(at.shape[-2:], at.strides[-2:])
        size = int(np.prod(planned(source)))
        memory = {"a": numbers.uniform(size=size), "b": numbers.uniform(size=int(planned((columns,))[0]) * 2)}
        c = np.full(planned((rows,))[0] * 2, np.nan)
        interpreted(gemm_call(a, dense((columns, 2))), memory, c)
        assert np.allclose(c.reshape(-1, 2), matrix(memory["a"], a) @ memory["b"].reshape(-1, 2)), (
            f"{source} -> {shape}"
        )
    assert readable
