"""The reference of `hil`: boards with tuned kernels agree with it, boards with a wrong kernel do not."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.device.reference import Reference
from autodiff_gen.host.trainer import host_trainer

pytestmark = pytest.mark.cc

# ref's product with one element wrong by a hundredth.
WRONG = """\
#include "ag_kernels.h"

ag_KERNEL_f32_fn ag_KERNEL_f32_wrong;

void ag_KERNEL_f32_wrong(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc, int32_t m,
                          int32_t n, int32_t k, float alpha, float beta, const ag_epilogue *epilogue) {
    ag_KERNEL_f32_ref(a, lda, b, ldb, c, ldc, m, n, k, alpha, beta, epilogue);
    c[0] *= 1.01f;
}
"""
TABLE = """\
schema = 1
[serves]
KERNEL_f32 = []
"""


@pytest.fixture(scope="module")
def model():
    """The gradient of the convolution's bias is 0 but for rounding, which Adam makes a whole step."""
    net = nn.Sequential(nn.Conv1d(3, 8, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 60, 4))
    return ag.Model.supervised(
        net, input=(8, 3, 64), loss=nn.CrossEntropyLoss(), optimizer=optim.Adam(lr=0.01)
    )


def differences(model, kernels, steps=8):
    """Train a board, whose kernels are these, and the reference; the names of all that differ by more than rounding."""
    board = host_trainer(model, kernels=kernels)
    host = Reference(lambda: host_trainer(model, kernels="ref"), exact=False)
    found, moved = set(), 0.0
    host.init()
    for step in range(steps):
        rng = np.random.default_rng(step)
        x = rng.integers(0, 256, (8, 3, 64)).astype(np.float32) / np.float32(255)
        batch = x, rng.integers(0, 4, 8).astype(np.uint8)
        pairs = {"loss": (board.train_step(*batch), host.train_step(*batch))}
        pairs["outputs"] = (board.predict(x), host.predict(x)["outputs"])
        state, here = board.state_dict(), host.state_dict()
        pairs |= {n: (a, here[n]) for n, a in state.items()}
        found |= {n for n, (a, b) in pairs.items() if host.differs(n, a, b)}
        moved = max(moved, float(np.abs(state["0.bias"] - here["0.bias"]).max()))
    return found, moved


def test_tuned_kernels_that_round_differently_pass(model):
    found, moved = differences(model, "fast,ref")
    assert found == set()
    assert moved > 1e-3  # far beyond a relative tolerance


@pytest.mark.parametrize("kernel, name", [("gemm_nt", "loss"), ("gemm_tn", "4.weight.exp_avg")])
def test_a_wrong_kernel_is_found(model, tmp_path, kernel, name):
    """The product of the last layer, and the gradient of its weights."""
    folder = tmp_path / "wrong"
    folder.mkdir()
    (folder / "gemm.c").write_text(WRONG.replace("KERNEL", kernel))
    (folder / "kernels.toml").write_text(TABLE.replace("KERNEL", kernel))
    found, _ = differences(model, f"{folder}/,ref", steps=4)
    assert name in found


def test_without_tuned_kernels_every_bit_counts(model):
    host = Reference(lambda: host_trainer(model, kernels="ref"), exact=True)
    weight = host.state_dict()["4.weight"]
    assert host.differs("4.weight", weight, weight) == ""
    assert host.differs("4.weight", np.nextafter(weight, np.float32(9)), weight).startswith("off by ")
    assert not host.copies
