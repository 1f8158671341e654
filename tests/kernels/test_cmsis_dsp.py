"""The backend `cmsis_dsp`: where CMSIS-DSP is looked for, and the one line for each fault.

CMSIS-DSP itself is no part of the tests, which need no network. A stand-in with its interface shows that the wrappers
call it as its documentation says; `autodiff-gen fetch cmsis_dsp` and `test-kernels cmsis_dsp` compare the real one.
"""

import pytest
from c_build import KERNELS

from autodiff_gen.check.kernels import test_kernels as compare
from autodiff_gen.cli.main import main
from autodiff_gen.errors import KernelError
from autodiff_gen.kernels import registry, third_party
from autodiff_gen.targets import board

HEADER = """\
/* @version  V1.10.0 */
#include <stdint.h>
typedef float float32_t;
typedef int arm_status;
typedef struct {
    uint16_t numRows;
    uint16_t numCols;
    float32_t *pData;
} arm_matrix_instance_f32;
arm_status arm_mat_mult_f32(const arm_matrix_instance_f32 *a, const arm_matrix_instance_f32 *b,
                            arm_matrix_instance_f32 *c);
void arm_mat_vec_mult_f32(const arm_matrix_instance_f32 *a, const float32_t *x, float32_t *y);
"""
MATRIX = """\
#include "arm_math.h"
arm_status arm_mat_mult_f32(const arm_matrix_instance_f32 *a, const arm_matrix_instance_f32 *b,
                            arm_matrix_instance_f32 *c) {
    if (a->numCols != b->numRows || c->numRows != a->numRows || c->numCols != b->numCols) {
        return -3;
    }
    for (int i = 0; i < a->numRows; i++) {
        for (int j = 0; j < b->numCols; j++) {
            float sum = 0.0f;
            for (int k = 0; k < a->numCols; k++) {
                sum += a->pData[i * a->numCols + k] * b->pData[k * b->numCols + j];
            }
            c->pData[i * b->numCols + j] = sum;
        }
    }
    return 0;
}
"""
VECTOR = """\
#include "arm_math.h"
void arm_mat_vec_mult_f32(const arm_matrix_instance_f32 *a, const float32_t *x, float32_t *y) {
    for (int i = 0; i < a->numRows; i++) {
        y[i] = 0.0f;
        for (int k = 0; k < a->numCols; k++) {
            y[i] += a->pData[i * a->numCols + k] * x[k];
        }
    }
}
"""
FILES = {
    "Include/arm_math.h": HEADER,
    "Source/MatrixFunctions/arm_mat_mult_f32.c": MATRIX,
    "Source/MatrixFunctions/arm_mat_vec_mult_f32.c": VECTOR,
}


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A stand-in, and the variable that points at it; nothing is fetched."""
    folder = tmp_path / "CMSIS DSP"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("CMSIS_DSP", str(folder))
    monkeypatch.setattr(third_party, "fetched", lambda: tmp_path / "packages")
    return folder


@pytest.mark.cc
@pytest.mark.qemu
def test_the_wrappers_keep_the_contract(sources):
    lines, good = compare("cmsis_dsp", board.load("mps2_an386"))
    assert good, "\n".join(lines)
    assert [line.split()[0] for line in lines] == ["gemm_nn_f32", "gemv_f32"]


def test_it_serves_packed_products_alone(sources):
    loaded = registry.load(["cmsis_dsp", "armv7em"], features=["dsp", "fpu"], root=KERNELS)
    packed = {"m": 32, "n": 784, "lda": 784, "alpha": 1.0, "beta": 0.0}
    assert loaded.select("gemv_f32", packed).backend == "cmsis_dsp"
    for change in ({"lda": 785}, {"alpha": -1.0}, {"beta": 1.0}, {"n": 65536, "lda": 65536}):
        assert loaded.select("gemv_f32", {**packed, **change}).backend == "armv7em"
    names = {s.name for s in loaded.sources() if s.backend == "cmsis_dsp"}
    assert names == {"products", "external/arm_mat_mult_f32", "external/arm_mat_vec_mult_f32"}
    assert sources / "Include" in loaded.include_dirs()


def rejected():
    with pytest.raises(KernelError) as error:
        registry.load(["cmsis_dsp"], root=KERNELS)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_without_sources(sources, monkeypatch):
    monkeypatch.delenv("CMSIS_DSP")
    assert rejected() == (
        "backend 'cmsis_dsp' needs CMSIS-DSP: set CMSIS_DSP to the path of its sources, "
        "or run autodiff-gen fetch cmsis_dsp"
    )


@pytest.mark.parametrize("says, found", [("@version  V1.8.1", "has version 1.8.1"), ("", "has no version")])
def test_an_unsupported_version(sources, says, found):
    (sources / "Include/arm_math.h").write_text(HEADER.replace("@version  V1.10.0", says))
    assert rejected() == (f"CMSIS_DSP={sources}: Include/arm_math.h {found}; supported of CMSIS-DSP: 1.10.0")


def test_another_folder(sources, monkeypatch):
    monkeypatch.setenv("CMSIS_DSP", str(sources / "Include"))
    assert rejected() == f"CMSIS_DSP={sources}/Include is not CMSIS-DSP: it has no Include/arm_math.h"


def test_a_board_that_cannot_run_it(sources, capsys):
    assert main(["test-kernels", "cmsis_dsp", "--board", "mps2_an385"]) == 1
    assert capsys.readouterr().err == (
        "error: backend 'cmsis_dsp' needs the core feature 'dsp', which the board lacks (it has: none)\n"
    )
