"""Which generated C takes the short ways of ag_math.h, and where it has loops for vectors."""

import pytest

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.vector_loops import VECTOR, all_short
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board


def loop(turns: object, *body: str, indent: int = 4) -> str:
    space = " " * indent
    head = f"{space}for (int32_t i = 0; i < {turns}; i++) {{"
    return "\n".join(
        [head, *(line if line.startswith(" ") else f"{space}    {line}" for line in body), space + "}"]
    )


CALL = "y[i] = ag_tanhf(x[i]);"


@pytest.mark.parametrize(
    ("source", "short"),
    [
        ("", False),
        (loop(64, "y[i] = x[i];"), False),
        (CALL, True),
        (loop(VECTOR - 1, CALL), True),
        (loop(VECTOR, CALL), False),
        (loop("n", CALL), True),  # at most 4
        (loop("4 * n", CALL), False),
        (loop(64, CALL, loop(4, "y[i] = x[i];", indent=8)), True),
        (loop(64, loop(4, CALL, indent=8)), True),
        (loop(4, loop(64, CALL, indent=8)), False),
        (loop(4, CALL) + "\n" + loop(64, CALL), False),
        (loop(64, "y[i] = x[i];") + "\n" + loop(4, CALL), True),
        ("for (int32_t k = 9; k > 0; k--) {\n    y[k] = ag_expf(x[k]);\n}", False),
    ],
)
def test_loops(source: str, short: bool) -> None:
    assert all_short(source, batch=4, vectors=VECTOR) == short


def test_boards_with_vectors_get_flat_loops() -> None:
    """Of w5's tanh, 4 units for each of 4 samples, and of w4's exp, 2 for each of 4; the arena does not grow."""
    for name, loop in (
        ("w5", "i < 4 * n; i++) {\n        tanh1[i] ="),
        ("w4", "i < 2 * n; i++) {\n        exp1[i] ="),
    ):
        model = load_model(name)[0]
        plain = compile_model(model, name, ["ref"])
        wide = compile_model(model, name, ["ref"], board.load("host_avx2"))
        text = emit(wide)[f"{name}.c"]
        assert loop in text and loop not in emit(plain)[f"{name}.c"]
        assert "AG_MATH_SHORTCUTS" not in text
        assert wide.struct_bytes <= plain.struct_bytes


@pytest.mark.parametrize(("name", "short"), [("w5", True), ("w1", False)])
def test_workloads(name: str, short: bool) -> None:
    """w5 calls tanh for 4 units at a time, w1 sigmoid for 32."""
    text = emit(compile_model(load_model(name)[0], name, ["ref"]))[f"{name}.c"]
    assert ("#define AG_MATH_SHORTCUTS 1" in text) == short
