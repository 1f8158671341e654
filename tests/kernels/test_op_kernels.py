"""The kernels of `ref` that ops call through their record, against the record's reference in float64: every op that is
a call x sample, operands dense and strided, between guards; outputs begin as NaN."""

import ctypes

import numpy as np
import pytest
from c_build import HOST
from kernel_builds import EPSILON, GUARD, PAD, REF, build
from op_cases import case

from autodiff_gen.ir.kernel_call import Operand, Scalar
from autodiff_gen.ir.node import OPS, in_form
from autodiff_gen.ir.op_forms import AddedToMemory
from autodiff_gen.ir.op_kinds import KernelOp
from autodiff_gen.ir.strides import Strided, row_major
from autodiff_gen.ir.types import Type, dtype
from autodiff_gen.kernels.contract import CONTRACT, STRUCTS

CALLS = [name for name, op in OPS.items() if isinstance(op.lower, KernelOp)]
SCALES = [(1.0, 0.0), (-0.01, 1.0), (0.5, -2.0), (0.0, 0.0), (0.0, 1.0)]
ORDERS = ("dense", "reversed", "slack")


class Array:
    """An array in a separate guarded buffer: row-major, with its axes stored in another order, or with room
    after each row."""

    def __init__(self, values, order):
        shape = values.shape
        slack = 3 if order == "slack" and shape else 0
        stored = shape[::-1] if order == "reversed" else (*shape[:-1], *(d + slack for d in shape[-1:]))
        strides = row_major(stored)
        self.strides = strides[::-1] if order == "reversed" else strides
        guard = PAD if values.dtype.kind == "f" else values.dtype.type(77)
        self.buffer = np.full(2 * GUARD + int(np.prod(stored)), guard, values.dtype)
        steps = tuple(s * values.itemsize for s in self.strides)
        self.view = np.lib.stride_tricks.as_strided(self.buffer[GUARD:], shape, steps)
        self.view[...] = values
        self.before = self.buffer.copy()

    @property
    def layout(self):
        return Strided(self.view.shape, self.strides)

    @property
    def pointer(self):
        return ctypes.c_void_p(self.buffer.ctypes.data + GUARD * self.buffer.itemsize)

    def untouched(self, written):
        now = self.buffer.copy()
        if written:
            steps = tuple(s * now.itemsize for s in self.strides)
            inside = np.lib.stride_tricks.as_strided(now[GUARD:], self.view.shape, steps)
            before = np.lib.stride_tricks.as_strided(self.before[GUARD:], self.view.shape, steps)
            inside[...] = before
        return now.tobytes() == self.before.tobytes()


def struct_of(name, fields):
    """A pointer to a C struct of STRUCTS."""
    made = type(name, (ctypes.Structure,), {"_fields_": [(f, ctypes.c_int32) for f in STRUCTS[name]]})
    assert set(fields) == set(STRUCTS[name])
    return ctypes.byref(made(**fields))


class Epilogue(ctypes.Structure):
    """ag_epilogue."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("scale", "bias", "residual")),
        ("low", ctypes.c_float),
        ("high", ctypes.c_float),
    ]


def epilogue_of(epilogue, places):
    pointers = {name: places[role].pointer for name, role in epilogue.pointers.items()}
    return ctypes.byref(Epilogue(**pointers, low=epilogue.low, high=epilogue.high))


def argument(param, call, places, scalars):
    if param.is_epilogue:
        return None if call.epilogue is None else epilogue_of(call.epilogue, places)
    if param.is_scratch:
        return None  # `ref` has none
    if param.struct:
        return struct_of(param.struct, call.shape)
    if param.is_pointer:
        return places[call.pointers[param.name]].pointer
    if param.ctype == "float":
        factor = call.factors[param.name]
        value = scalars[factor.index] * (-1 if factor.negate else 1) if isinstance(factor, Scalar) else factor
        return ctypes.c_float(value)
    return ctypes.c_int32(call.sizes[param.name])


@pytest.fixture(scope="module", params=HOST)
def library(request, tmp_path_factory):
    """`ref` by one compiler."""
    return build(REF, request.param, tmp_path_factory.mktemp(request.param))


def run(library, op, attrs, arrays, order, kept=None):
    """The kernel of `ref` that serves the call, with its results beside the record's; returns the kernels, and puts the
    results into `kept`."""
    lower, adds = op.lower, isinstance(op.form, AddedToMemory)
    given = [
        a if adds and i >= len(arrays) - 2
        else Array(a, order if i in lower.strided else "dense")
        for i, a in enumerate(arrays)
    ]  # fmt: skip
    types = op.infer(*(Type(dtype_of(a), a.shape) for a in arrays), **attrs)
    types = types if isinstance(types, tuple) else (types,)
    layouts = [g.layout if isinstance(g, Array) else Strided((), ()) for g in given]
    call = lower.choose(layouts, types, attrs)
    exact = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    want = op.ref(*exact, **attrs)
    want = want if isinstance(want, tuple) else (want,)
    added = {"beta": abs(attrs["beta"]), "negate": False} if adds else {}
    if call.epilogue is not None:
        added = {"low": 0.0, "high": 0.0}  # no limits
    size = op.ref(*(np.abs(a) for a in exact), **{**attrs, **added})  # no term cancels another
    size = size if isinstance(size, tuple) else (size,)
    served = []
    for kernel in REF.kernels:
        if kernel.name != call.kernel or not kernel.matches(call.facts()):
            continue
        results = []
        for t in types:
            start = np.zeros(t.shape, t.dtype.numpy)
            start[...] = np.nan if t.dtype.kind == "f" else np.iinfo(start.dtype).max
            if adds and attrs["beta"] != 0.0:
                start[...] = arrays[-2]
            results.append(Array(start, "dense"))
        roles = [*call.pointers.values(), *(call.epilogue.pointers.values() if call.epilogue else ())]
        places = {
            role: given[role.index] if isinstance(role, Operand) else results[role.index] for role in roles
        }
        arguments = [argument(p, call, places, arrays) for p in CONTRACT[kernel.name].params]
        function = getattr(library, kernel.symbol)
        function.restype = None
        function(*arguments)
        where = f"{kernel.symbol} {[a.shape for a in arrays]} {attrs} {order}"
        for got, right, scale in zip(results, want, size, strict=True):
            # sums of at most a few hundred terms; without cancellation they would be as large as `scale`
            bound = 300 * EPSILON * np.abs(scale) if got.view.dtype.kind == "f" else 0
            np.testing.assert_array_equal(np.abs(got.view - right.astype(np.float64)) <= bound, True, where)
            assert got.untouched(written=True), f"{where}: wrote outside its result"
        assert all(a.untouched(written=False) for a in given if isinstance(a, Array)), (
            f"{where}: changed an operand"
        )
        served.append(kernel)
        if kept is not None:
            kept += results
    return served


def dtype_of(array):
    return next(dtype(k) for k in ("f32", "u8", "s32", "u32", "s8") if dtype(k).numpy == array.dtype.name)


@pytest.mark.cc
@pytest.mark.parametrize("name", [c for c in CALLS if not isinstance(OPS[c].form, AddedToMemory)])
def test_calls_against_the_record(library, name):
    op = OPS[name]
    for order in ORDERS:
        served = []
        for i in range(len(op.samples)):
            served += run(library, op, op.samples[i].attrs, case(name, i).arrays, order)
        assert served, order


INTO = {
    "axpby": "",
    "column_sums_into": "column_sums",
    "conv2d_dw_into": "conv2d_dw",
    "conv2d_pool_dw_into": "conv2d_pool_dw",
    "depthwise2d_dw_into": "depthwise2d_dw",
    "index_sum_into": "index_sum",
}


def test_every_call_that_adds_is_in_the_table():
    assert set(INTO) == {c for c in CALLS if isinstance(OPS[c].form, AddedToMemory)}
    assert all(OPS[name].form.of == term for name, term in INTO.items())
    assert all(in_form(OPS[term], AddedToMemory) is OPS[name] for name, term in INTO.items() if term)


def terms_of(name, rng):
    """(operands, the added array, attributes) for every sample of the term; vectors where operand 0 itself is added."""
    if not INTO[name]:
        for size in (1, 5, 8, 39):
            x = rng.uniform(-1, 1, size).astype(np.float32)
            yield (x,), x, {}
        return
    term = OPS[INTO[name]]
    for i, sample in enumerate(term.samples):
        factors = case(term.name, i).arrays
        yield factors, term.ref(*factors, **sample.attrs), sample.attrs


@pytest.mark.cc
@pytest.mark.parametrize("name", INTO)
def test_calls_that_add_against_the_record(library, name):
    """alpha may be 0; where beta is 0 the memory begins as NaN, which must not show."""
    op = OPS[name]
    for alpha, beta in SCALES:
        served = []
        rng = np.random.default_rng(3)
        for i, (factors, added, given) in enumerate(terms_of(name, rng)):
            old = rng.uniform(-1, 1, added.shape).astype(np.float32)
            attrs = {**given, "beta": beta, "negate": bool(i % 2)}
            for order in ORDERS:
                served += run(library, op, attrs, (*factors, old, np.float32(alpha)), order)
        assert served, (alpha, beta)


@pytest.mark.cc
def test_a_weights_sum_is_complete_before_it_is_read(library):
    """Products far below the weight's last digit must still add up: 1024 of 2^-26 change 1 by 2^-16."""
    x = np.full((1, 32, 32, 1), 2.0**-13, np.float32)
    one = np.ones((1, 1, 1, 1), np.float32)
    attrs = {"stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "kernel": (1, 1)}
    for name, more, old in (("conv2d_dw_into", {"groups": 1}, one), ("depthwise2d_dw_into", {}, one[0])):
        given = {**attrs, **more, "beta": 1.0, "negate": False}
        results = []
        run(library, OPS[name], given, (x, x, old, np.float32(1.0)), "dense", results)
        assert results and all(r.view.reshape(-1)[0] == np.float32(1 + 2.0**-16) for r in results)
