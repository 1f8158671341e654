"""Test vectors for `pio test`: the results of the contract's kernels in float64, as a C header.

Inputs are ag_rng.h's numbers, drawn on the board as here. write_vectors.py writes the header.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matrix_products import product_of, shapes_of
from op_cases import case

from autodiff_gen.ir import counter_rng
from autodiff_gen.ir.kernel_call import Operand
from autodiff_gen.ir.node import OPS
from autodiff_gen.ir.op_forms import AddedToMemory
from autodiff_gen.ir.op_kinds import KernelOp
from autodiff_gen.ir.strides import Strided, row_major
from autodiff_gen.ir.types import Type, dtype
from autodiff_gen.kernels.contract import CONTRACT, STRUCTS

TOLERANCE = 1e-5  # of the largest number of an array: float32 on the board against float64 here


def floats(values: Any) -> str:
    """float32 literals, 9 digits."""
    words = (f"{float(np.float32(v)):.9g}" for v in np.asarray(values, np.float64).reshape(-1))
    return ", ".join(f"{w if any(c in w for c in '.en') else w + '.0'}f" for w in words)


def bound(values: Any) -> str:
    return floats([TOLERANCE * max(float(np.abs(values).max()), 1e-3)])


@dataclass(frozen=True)
class KernelCase:
    """One call of a kernel: arrays of its inputs by parameter, with key and step of those that are drawn; its arguments
    as C words; the expected output."""

    kernel: str
    inputs: Mapping[str, tuple[Any, int, int]]
    struct: Mapping[str, int]
    words: Mapping[str, str]
    outputs: Mapping[str, Any]


def drawn(shape: Sequence[int], key: int, step: int, low: float = -1.0, span: float = 2.0) -> Any:
    """What vectors_draw_f32 draws, float64."""
    unit = counter_rng.unit(key, step, np.arange(int(np.prod(shape, dtype=int))))
    return (np.float32(low) + unit * np.float32(span)).astype(np.float64).reshape(shape)


def kernel_cases() -> list[KernelCase]:
    """One of every kernel in the contract that an op calls or that is a product."""
    cases = [product_case(name) for name in CONTRACT if name.startswith("ge")]
    done = {c.kernel for c in cases}
    for name, op in OPS.items():
        if isinstance(op.lower, KernelOp) and not isinstance(op.form, AddedToMemory):
            made = next(filter(None, (call_case(name, i) for i in range(len(op.samples)))), None)
            if made is not None and made.kernel not in done:
                cases.append(made)
                done.add(made.kernel)
    return cases


def product_case(name: str) -> KernelCase:
    m, n, k, alpha, beta = 3, 5, 4, 0.5, 2.0
    spec, key = CONTRACT[name], list(CONTRACT).index(name)
    arrays = {p: drawn(s, key, i) for i, (p, s) in enumerate(shapes_of(name, m, n, k).items())}
    total = product_of(name, arrays)[0]
    words = {"m": "3", "n": "5", "k": "4", "alpha": "0.5f", "beta": "2.0f"}
    words |= {f"ld{p}": str(a.shape[1]) for p, a in arrays.items()} | {p: p for p in arrays}
    want = alpha * total + beta * arrays[spec.output]
    inputs = {p: (a, key, i) for i, (p, a) in enumerate(arrays.items())}
    return KernelCase(name, inputs, {}, words, {spec.output: want})


def call_case(name: str, index: int) -> KernelCase | None:
    """The kernel call of an op's sample on dense operands; None where it is repeated along an axis."""
    op, made = OPS[name], case(name, index)
    assert isinstance(op.lower, KernelOp)
    key = 1000 + sum(map(ord, name))
    arrays = [drawn(a.shape, key, i) if a.dtype.kind == "f" else a for i, a in enumerate(made.arrays)]
    attrs = made.sample.attrs
    types = op.infer(*(Type(_dtype_of(a), a.shape) for a in arrays), **attrs)
    types = types if isinstance(types, tuple) else (types,)
    call = op.lower.choose([Strided(a.shape, row_major(a.shape)) for a in arrays], types, attrs)
    if call.over:
        return None
    want = op.ref(*arrays, **attrs)
    want = want if isinstance(want, tuple) else (want,)
    spec = CONTRACT[call.kernel]
    words = {p.name: f"&{p.name}" for p in spec.params if p.struct}
    words |= {n: str(v) for n, v in call.sizes.items()} | {n: floats([v]) for n, v in call.factors.items()}
    inputs: dict[str, tuple[Any, int, int]] = {}
    outputs: dict[str, Any] = {}
    for p, place in call.pointers.items():
        words[p] = p
        if isinstance(place, Operand):
            inputs[p] = arrays[place.index], key, place.index
        else:
            outputs[p] = want[place.index]
    return KernelCase(call.kernel, inputs, dict(call.shape), words, outputs)


def _dtype_of(array: Any) -> Any:
    return dtype(
        {"float64": "f32", "uint8": "u8", "int32": "s32", "uint32": "u32", "int8": "s8"}[array.dtype.name]
    )


def kernel_header() -> str:
    cases = kernel_cases()
    parts = [kernel_text(c) for c in cases]
    rows = " ".join(f"X({c.kernel})" for c in cases)
    return (
        "/* Every kernel of the contract against float64. Written by tests/support/kernel_vectors.py. */\n"
        '#include "ag_kernels.h"\n#include "vectors.h"\n\n'
        + "\n".join(parts)
        + f"\n#define KERNEL_VECTORS(X) {rows}\n"
    )


def kernel_text(c: KernelCase) -> str:
    spec = CONTRACT[c.kernel]
    c_types = {p.name: p.ctype.removeprefix("const ").removesuffix(" *") for p in spec.params}
    lines = [f"static void {c.kernel}(void) {{"]
    for p in spec.params:
        if p.struct:
            fields = ", ".join(str(c.struct[f]) for f in STRUCTS[p.struct])
            lines.append(f"static const ag_{p.struct} {p.name} = {{{fields}}};")
    for p, (a, _, _) in c.inputs.items():
        if a.dtype.kind == "f":
            lines.append(f"float {p}[{a.size}];")
        else:
            lines.append(f"static const {c_types[p]} {p}[] = {{{', '.join(map(str, a.reshape(-1)))}}};")
    for p, a in c.outputs.items():
        if p not in c.inputs:
            lines.append(f"{c_types[p]} {p}[{a.size}];")
        element = "float" if a.dtype.kind == "f" else c_types[p]
        values = floats(a) if a.dtype.kind == "f" else ", ".join(map(str, a.reshape(-1)))
        lines.append(f"static const {element} want_{p}[] = {{{values}}};")
    for p, (a, key, step) in c.inputs.items():
        if a.dtype.kind == "f":
            lines.append(f"vectors_draw_f32({p}, {a.size}, {key}u, {step}u, -1.0f, 2.0f);")
    lines += [f"vectors_spoil({p}, sizeof {p});" for p in c.outputs if p not in c.inputs]
    call = ", ".join("NULL" if p.is_epilogue or p.is_scratch else c.words[p.name] for p in spec.params)
    lines.append(f"ag_{c.kernel}_ref({call});")
    for p, a in c.outputs.items():
        if a.dtype.kind == "f":
            lines.append(f'vectors_compare("{c.kernel}", {p}, want_{p}, {a.size}, {bound(a)});')
        else:
            lines.append(f'vectors_equal("{c.kernel}", {p}, want_{p}, sizeof want_{p});')
    return "\n".join([*lines, "}", ""])
