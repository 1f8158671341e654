"""The traits of every op's record hold for its NumPy reference, on its samples and on numbers from far and wide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from op_cases import Case, case
from small_graphs import x_of

from autodiff_gen import functional as F
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import OPS, Op, topological
from autodiff_gen.ir.op_forms import ByRows, FirstResultOnly, Form, WithLayout
from autodiff_gen.ir.op_kinds import Contraction, Elementwise, KernelOp, Reduce, View, ViewKind
from autodiff_gen.ir.traits import by_rows, in_one_call, macs
from autodiff_gen.ir.views import layout
from autodiff_gen.passes.calls.kernel_calls import call_of


def wide(*shape: int, seed: int = 1) -> Any:
    """float32 numbers of both signs and of magnitudes from 1e-18 to 1e18, with zeros and integers among them."""
    rng = np.random.default_rng(seed)
    x = rng.choice([-1, 1], shape) * 10.0 ** rng.uniform(-18, 18, shape)
    near = np.round(rng.uniform(-8, 8, shape)) * rng.choice([1.0, 1 + 2.0**-23, 1 - 2.0**-24], shape)
    return np.where(rng.uniform(size=shape) < 0.5, x, near).astype(np.float32)


def operands(op: Op, seed: int = 1) -> list[Any]:
    """Wide numbers for every operand of an elementwise op; a mask where the sample says so."""
    sample = op.samples[0]
    found = [wide(4000, seed=seed + k) for k in range(len(sample.inputs))]
    return [x > 0 if sample.dtypes.get(k) == "bool" else x for k, x in enumerate(found)]


def agree(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b, equal_nan=True))


# Elementwise ops


def is_exact(op: Op) -> bool:
    """Whether the result in float32 is that in float64, rounded. For one operation of IEEE 754 on float32 numbers the
    second rounding makes no difference."""
    given = operands(op)
    with np.errstate(all="ignore"):
        once = op.ref(*given)
        twice = np.asarray(op.ref(*(x.astype(np.float64) for x in given))).astype(np.float32)
    return agree(once, twice)


def has_signs(op: Op) -> bool:
    given = [x.astype(np.float64) for x in operands(op)]
    return len(given) == len(op.signs) and agree(
        op.ref(*given), sum(s * x for s, x in zip(op.signs, given, strict=True))
    )


def has_powers(op: Op) -> bool:
    given = [np.abs(x.astype(np.float64)) + 1e-12 for x in operands(op)]
    if any(float(p).is_integer() for p in op.powers):
        given = [x * np.sign(s + 0.5) for x, s in zip(given, operands(op, seed=5), strict=True)]
    product = np.prod([x**p for x, p in zip(given, op.powers, strict=True)], axis=0)
    return len(given) == len(op.powers) and np.allclose(op.ref(*given), product, rtol=1e-12, atol=0.0)


def is_chosen(op: Op) -> bool:
    given = operands(op) if op.samples else [wide(4000)]
    return bool(np.any([given[i] == _ref(op)(*given) for i in op.chooses], axis=0).all())


def _ref(op: Op) -> Callable[..., Any]:
    return partial(op.ref, **op.samples[0].attrs) if op.samples else lambda x: op.ref(x, layout=None, of="")


def is_bounded(op: Op) -> bool:
    given = operands(op)
    with np.errstate(all="ignore"):
        y = op.ref(*given)
    return bool((np.abs(y) <= np.max([np.abs(given[i]) for i in op.bounded_by], axis=0)).all())


def is_non_negative(op: Op) -> bool:
    with np.errstate(all="ignore"):
        y = op.ref(*operands(op))
    return bool(((y >= 0) | np.isnan(y)).all())


def is_comparison(op: Op) -> bool:
    x = np.arange(-300, 300)
    with np.errstate(all="ignore"):
        return len({bool(y) for y in op.ref(x, x)}) == 1 and op.ref(x, x).dtype == bool


def is_equality(op: Op) -> bool:
    a, b = np.float32([1, 3, 2, 0, np.inf, np.nan]), np.float32([1, 2, 3, -0.0, np.inf, np.nan])
    return agree(op.ref(a, b), a == b)


def materializes(op: Op) -> bool:
    x = wide(40)
    y = _ref(op)(x)
    return agree(x, y) and not np.shares_memory(x, y)


def is_monotone(op: Op, attrs: Any) -> bool:
    x = np.sort(wide(4000))
    y = op.ref(x, **attrs)
    return bool((np.diff(y) >= 0).all() and np.isnan(op.ref(np.float32(np.nan), **attrs)))


CHECKS: dict[str, Callable[[Op], bool]] = {
    "exact": is_exact,
    "signs": has_signs,
    "powers": has_powers,
    "chooses": is_chosen,
    "bounded_by": is_bounded,
    "non_negative": is_non_negative,
    "comparison": is_comparison,
    "equality": is_equality,
    "materializes": materializes,
}
STATED = [(trait, name) for trait in CHECKS for name, op in OPS.items() if getattr(op, trait)]


@pytest.mark.parametrize(("trait", "name"), STATED)
def test_traits_of_elementwise_ops(trait: str, name: str) -> None:
    op = OPS[name]
    assert isinstance(op.lower, Elementwise)
    assert CHECKS[trait](op)


def test_every_check_is_made_on_some_op() -> None:
    assert {trait for trait, _ in STATED} == set(CHECKS)


@pytest.mark.parametrize(
    ("trait", "name", "value"),
    [
        ("exact", "exp", True),
        ("exact", "tanh", True),
        ("exact", "rsqrt", True),
        ("signs", "add", (1, -1)),
        ("signs", "mul", (1, 1)),
        ("powers", "div", (1, 1)),
        ("powers", "square", (1,)),
        ("powers", "abs", (1,)),
        ("chooses", "where", (1,)),
        ("chooses", "abs", (0,)),
        ("bounded_by", "exp", (0,)),
        ("bounded_by", "floor", (0,)),
        ("non_negative", "tanh", True),
        ("comparison", "logical_and", True),
        ("equality", "ge", True),
        ("materializes", "detach", True),
    ],
)
def test_a_wrong_trait_is_found(trait: str, name: str, value: Any) -> None:
    op = OPS[name]
    fields = {k: getattr(op, k) for k in ("infer", "ref", "vjp", "lower", "samples")}
    assert not CHECKS[trait](Op(name, **fields, **{trait: value}))


ATTRIBUTES = [
    (name, i)
    for name, op in OPS.items()
    for i, sample in enumerate(op.samples)
    if isinstance(op.lower, Elementwise) and op.monotone(sample.attrs)
]


@pytest.mark.parametrize(("name", "i"), ATTRIBUTES)
def test_monotone(name: str, i: int) -> None:
    op = OPS[name]
    assert len(op.samples[i].inputs) == 1
    assert is_monotone(op, op.samples[i].attrs)


def test_monotone_depends_on_attributes() -> None:
    leaky, clamp = OPS["leaky_relu"], OPS["hardtanh"]
    falling = {"negative_slope": -0.5}
    assert not leaky.monotone(falling) and not is_monotone(leaky, falling)
    assert leaky.monotone({"negative_slope": 0.0})
    assert not clamp.monotone({"min_val": 1.0, "max_val": -1.0})
    assert not is_monotone(OPS["sign"], {})  # 0 for NaN


# Conversions, views, reductions


ROWS = [(name, i) for name, op in OPS.items() for i in range(len(op.samples))]


def _rows(kind: type, wanted: Callable[[Any], Any] = bool) -> list[tuple[str, int]]:
    return [(name, i) for name, i in ROWS if isinstance(OPS[name].lower, kind) and wanted(OPS[name].lower)]


def _result(c: Case) -> Any:
    out = c.op.ref(*c.arrays, **c.sample.attrs)
    return out[0] if isinstance(out, tuple) else out


@pytest.mark.parametrize(("name", "i"), _rows(Elementwise, lambda lower: lower.converts))
def test_conversions_keep_small_whole_numbers(name: str, i: int) -> None:
    c = case(name, i)
    x = np.abs(np.trunc(c.arrays[0])) if c.outs[0].dtype.kind != "b" else c.arrays[0] != 0
    assert agree(c.op.ref(np.asarray(x, c.arrays[0].dtype)), x)


def _points(attrs: Any) -> Any:
    """The window as indices along each axis."""
    axes = zip(attrs["shape"], attrs["starts"], attrs["steps"], strict=True)
    return np.ix_(*(start + np.arange(extent) * step for extent, start, step in axes))


@pytest.mark.parametrize(("name", "i"), _rows(View))
def test_views_are_of_their_kind(name: str, i: int) -> None:
    c = case(name, i)
    (x,), attrs = c.arrays, c.sample.attrs
    assert isinstance(c.op.lower, View)
    expected = {
        ViewKind.PERMUTE: lambda: np.transpose(x, attrs["dims"]),
        ViewKind.RESHAPE: lambda: np.reshape(x, attrs["shape"]),
        ViewKind.BROADCAST: lambda: np.broadcast_to(x, attrs["shape"]),
        ViewKind.WINDOW: lambda: x[_points(attrs)],
    }[c.op.lower.kind]()
    assert agree(_result(c), expected)


@pytest.mark.parametrize(("name", "i"), _rows(Reduce))
def test_sums_and_indexed_reductions(name: str, i: int) -> None:
    c = case(name, i)
    (x,), attrs = c.arrays, c.sample.attrs
    assert isinstance(c.op.lower, Reduce)
    total = np.sum(x, axis=attrs["axes"], keepdims=attrs["keepdim"])
    assert c.op.lower.sums == (np.allclose(_result(c), total) if x.size > 1 else name in ("sum", "sum_s32"))
    assert c.op.lower.indexed == (x.dtype.kind == "f" and c.outs[-1].dtype.kind == "i")
    if c.op.lower.indexed:
        values, index = (np.reshape(r, (-1, 1)) for r in c.op.ref(x, **attrs))
        lines = np.moveaxis(x, attrs["axes"][0], -1).reshape(len(index), -1)
        assert agree(np.take_along_axis(lines, index, 1), values)


# Contractions and calls


def has_factors(c: Case, factors: Sequence[int]) -> bool:
    """Whether the result is linear in each of these operands, two or more."""
    arrays = [np.float64(x) for x in c.arrays]

    def result(k: int, x: Any) -> Any:
        return c.op.ref(*(x if i == k else a for i, a in enumerate(arrays)), **c.sample.attrs)

    def is_linear(k: int, x: Any, y: Any) -> bool:
        return np.allclose(result(k, 2 * x - y), 2 * result(k, x) - result(k, y))

    return len(factors) > 1 and all(is_linear(k, arrays[k], arrays[k][..., ::-1]) for k in factors)


@pytest.mark.parametrize(("name", "i"), [row for row in ROWS if OPS[row[0]].factors])
def test_factors(name: str, i: int) -> None:
    assert has_factors(case(name, i), OPS[name].factors)


@pytest.mark.parametrize(
    ("name", "factors"), [("max_pool2d_dx", (0, 1)), ("square", (0,)), ("atan2", (0, 1))]
)
def test_wrong_factors_are_found(name: str, factors: tuple[int, ...]) -> None:
    assert not has_factors(case(name, 0), factors)


def _in_form(kind: type[Form]) -> list[tuple[str, str, int]]:
    forms = [(name, op.form.of) for name, op in OPS.items() if isinstance(op.form, kind)]
    return [(name, of, i) for name, of in forms for i in range(len(OPS[of].samples))]


@pytest.mark.parametrize(("name", "of", "i"), _in_form(FirstResultOnly) + _in_form(WithLayout))
def test_forms_have_the_same_first_result(name: str, of: str, i: int) -> None:
    c = case(of, i)
    more = {"layout": None, "of": ""} if isinstance(OPS[name].form, WithLayout) else {}
    assert agree(OPS[name].ref(*c.arrays, **c.sample.attrs, **more), _result(c))
    assert len(c.outs) == (1 if more else 2)


@pytest.mark.parametrize(("name", "of", "i"), _in_form(ByRows))
def test_products_by_rows_compute_the_same_as_in_one_call(name: str, of: str, i: int) -> None:
    c = case(of, i)
    made = by_rows(c.outs[0].node, c.outs[0].node.operands)
    if made is None:
        assert c.sample.attrs.get("groups", 1) != 1 or c.outs[0].ndim != 2
        return
    rows = made.base
    assert rows.node.op is OPS[name]
    again = in_one_call(rows.node, rows.node.operands)
    y, of_rows, matrix, one = evaluate([c.outs[0], made, rows, again], c.feeds)
    assert agree(of_rows.reshape(y.shape), y) and agree(one, matrix)


def test_plain_products() -> None:
    products = {n: op for n, op in OPS.items() if isinstance(op.lower, Contraction)}
    assert [n for n, op in products.items() if op.form is None] == ["matmul"]


def _takes_largest(name: str, i: int) -> bool:
    windows = OPS[name].windows([x.shape for x in case(name, i).arrays], OPS[name].samples[i].attrs)
    return windows is not None and windows.takes_largest


@pytest.mark.parametrize(("name", "i"), [row for row in ROWS if _takes_largest(*row)])
def test_the_largest_elements_commute_with_monotone_functions(name: str, i: int) -> None:
    c = case(name, i)
    (x,) = c.arrays
    for f in (lambda v: v**3, lambda v: np.maximum(v, 0), np.floor):
        pooled, *_ = c.op.ref(f(x), **c.sample.attrs)
        assert agree(pooled, f(_result(c)))


@pytest.mark.parametrize(("name", "i"), [row for row in ROWS if OPS[row[0]].scatters])
def test_sums_of_scattered_elements(name: str, i: int) -> None:
    c = case(name, i)
    (x, *_), axes = c.arrays, c.op.scatters
    if not any(c.sample.attrs["padding"]):  # an index of a sample may be in the padding
        moved = c.op.ref(np.float64(x), *c.arrays[1:], **c.sample.attrs)
        assert np.allclose(moved.sum(axes), np.float64(x).sum(axes), rtol=1e-12)


def _unpadded(row: tuple[str, int]) -> bool:
    attrs = OPS[row[0]].samples[row[1]].attrs
    return "padding" in attrs and not any(attrs["padding"]) and len(case(*row).outs) == 1


NO_MACS = KernelOp(lambda layouts, types, attrs: pytest.fail()).macs
COUNTED = [
    row
    for row in _rows(KernelOp, lambda lower: lower.macs is not NO_MACS)
    if _unpadded(row) and "s8" not in OPS[row[0]].samples[row[1]].dtypes.values()
]


@pytest.mark.parametrize(("name", "i"), COUNTED)
def test_macs_are_the_sum_of_products_of_ones(name: str, i: int) -> None:
    c = case(name, i)
    assert isinstance(c.op.lower, KernelOp)
    call = call_of(c.outs[0].node)
    ones = [np.ones_like(x) if x.dtype.kind == "f" else x for x in c.arrays]
    assert c.op.lower.macs(call) == np.sum(c.op.ref(*ones, **c.sample.attrs), dtype=np.float64)
    assert {"conv2d", "conv2d_dx", "conv2d_dw", "conv2d_pool_dx", "depthwise2d_dw"} <= {n for n, _ in COUNTED}


def test_macs_of_a_product_whose_operand_is_copied_first() -> None:
    """A reshape that no strides express has no layout."""
    x, w = x_of(6, 4, 2, name="x"), x_of(6, 3, 3, 8, name="w")
    image = F.reshape(F.permute(x, (1, 0, 2)), (1, 6, 8, 1))
    assert layout(image) is None
    y = F.conv2d(F.permute(image, (0, 3, 1, 2)), F.reshape(w, (48, 1, 3, 3)), padding=1)
    conv = next(n for n in topological([y]) if isinstance(n.op.lower, KernelOp))
    assert macs(conv) == 6 * 8 * 48 * 9
