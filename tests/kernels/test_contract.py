"""The kernel contract: kernels, structs and symbols are read from the header."""

import re

import pytest
from toy_backend import KERNELS

from autodiff_gen.errors import KernelError
from autodiff_gen.kernels import registry
from autodiff_gen.kernels.contract import STRUCTS, read_contract, read_structs


def contract(statements, macro="ag_##name##_fn ag_##name##_ref, ag_##name##_fast"):
    return read_contract(f"/* c; */\n#define AG_KERNEL(name) \\\n    {macro}\n{statements}\n")


def test_the_contract_is_read_from_the_header():
    kernels, declared = contract(
        """typedef void ag_a_fn(const float *x, float *y, uint8_t *index,
                    int32_t n, const ag_pool2d_shape *shape, float alpha);
           typedef ag_a_fn ag_b_fn, ag_c_fn; AG_KERNEL(c); AG_KERNEL(a); ag_a_fn ag_a_small_fast;"""
    )
    assert list(kernels) == ["c", "a"]
    assert declared == {"ag_a_ref", "ag_a_fast", "ag_c_ref", "ag_c_fast", "ag_a_small_fast"}
    spec = kernels["c"]
    assert spec.type_name == "ag_c_fn" and spec.output == "y"
    types = ["const float *", "float *", "uint8_t *", "int32_t", "const ag_pool2d_shape *", "float"]
    assert [(p.ctype, p.name) for p in spec.params] == list(
        zip(types, ("x", "y", "index", "n", "shape", "alpha"), strict=True)
    )
    assert spec.facts == ("n", *STRUCTS["pool2d_shape"], "alpha", "align")


def test_the_fields_of_a_struct_are_read_in_order():
    text = "typedef struct {\n int32_t h, w; /* rows; */\n int32_t c;\n} ag_image;"
    assert read_structs(text) == {"image": ("h", "w", "c")}
    assert STRUCTS["conv2d_pool_shape"][:3] == ("h", "w", "c")


@pytest.mark.parametrize(
    "statement, message",
    [
        ("AG_KERNEL(b);", "neither a function type nor the declaration of a kernel: AG_KERNEL(b)"),
        (
            "typedef void ag_a_fn(const double *x);",
            "'const double *x' is neither a number, an array nor a struct",
        ),
        ("int ag_a_ref(void);", "neither a function type"),
    ],
)
def test_what_is_no_line_of_the_contract_is_an_error(statement, message):
    with pytest.raises(KernelError, match=re.escape(message)):
        contract(statement)


@pytest.mark.parametrize("name", registry.available(KERNELS))
def test_the_header_declares_one_symbol_of_each_kernel_of_a_backend_in_the_tree(name):
    for kernel in registry.load([name], root=KERNELS).backends[0].kernels:
        assert kernel.declared or kernel.symbol != f"ag_{kernel.name}_{name}"
