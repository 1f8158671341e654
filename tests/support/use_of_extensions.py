"""Uses of the additions that CONTRIBUTING.md shows, run in a copy of the project that has them:

python use_of_extensions.py ADDITION FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.lowering import left_out_stages, pipeline

SHAPE = (4, 3, 5)


def elementwise_op(folder: Path) -> None:
    x = _numbers(SHAPE)
    value, gradient = _on_host(lambda v: F.tanhshrink(v), x)
    np.testing.assert_allclose(value, x - np.tanh(x), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(gradient, np.tanh(x) ** 2, rtol=1e-5, atol=1e-7)


def op_with_a_kernel(folder: Path) -> None:
    x = _numbers(SHAPE)
    value, gradient = _on_host(lambda v: F.logcumsumexp(v, 1), x)
    want = np.logaddexp.accumulate(x.astype(np.float64), 1)
    np.testing.assert_allclose(value, want, rtol=1e-5, atol=1e-6)
    later = np.flip(np.cumsum(np.flip(np.exp(-want), 1), 1), 1)
    np.testing.assert_allclose(gradient, np.exp(x) * later, rtol=1e-5)
    model = _model(lambda v: F.sum(F.logcumsumexp(v, 1), 1), optim.SGD(lr=0.1))
    assert "ag_logcumsumexp_f32_ref(" in emit(compile_model(model, "net"))["net.c"]


def optimizer(folder: Path) -> None:
    """Ten steps against NumPy, interrupted by a checkpoint that a second trainer continues from."""
    lr, beta1, beta2, decay = 0.05, 0.8, 0.9, 0.1
    rule = optim.Lion(lr=lr, betas=(beta1, beta2), weight_decay=decay)
    w = _numbers((5, 2), 1)
    state: dict[str, Any] = {"w": w.astype(np.float64), "exp_avg": 0.0}
    trainer = _trainer(w, rule)
    for step in range(1, 11):
        x, t = _numbers((3, 5), 2 * step), _numbers((3, 2), 2 * step + 1)
        trainer.train_step(x, t)
        error = 2 * (x @ state["w"] - t) / t.size
        g = x.T @ error
        direction = np.sign(beta1 * state["exp_avg"] + (1 - beta1) * g)
        state["exp_avg"] = beta2 * state["exp_avg"] + (1 - beta2) * g
        state["w"] = state["w"] - lr * (direction + decay * state["w"])
        found = trainer.state_dict()
        for name, key in (("w", "w"), ("w.exp_avg", "exp_avg")):
            np.testing.assert_allclose(found[name], state[key], rtol=2e-5, atol=1e-6, err_msg=name)
        if step == 5:
            checkpoint = folder / "checkpoint.bin"
            trainer.save(checkpoint)
            trainer = _trainer(np.zeros_like(w), rule)
            trainer.load(checkpoint)


def kernel_of_a_backend(folder: Path) -> None:
    """A model file for `explain`, and the same numbers as with `ref`."""
    x = _numbers(SHAPE)
    ours, theirs = (_on_host(lambda v: F.cumsum(v, 1), x, kernels) for kernels in ("fast,ref", "ref"))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6, atol=1e-6)
    (folder / "sums.py").write_text(
        "import autodiff_gen as ag\nfrom autodiff_gen import functional as F\n"
        "x = ag.Input('x', (4, 3, 5))\nfunctions = [ag.function([x], [F.cumsum(x, 1)], name='sums')]\n"
    )


def a_pass(folder: Path) -> None:
    """The stage is in Model.stages and in --dump, and the C has the product that it makes."""
    model = _model(lambda v: F.sum(v, 1) / 8.0, optim.SGD(lr=0.1))
    stages = [name for name, _ in model.stages]
    assert stages[:2] == ["resolve_mode", "strength_reduction"]
    dump = folder / "dump"
    text = emit(compile_model(model, "net", dump=pipeline.Dump(dump)))["net.c"]
    written = (dump / "predict.01.strength_reduction.txt").read_text()
    assert (
        "div(" in (dump / "predict.00.resolve_mode.txt").read_text()
        and "mul(" in written
        and "div(" not in written
    )
    assert "0.125f" in text and "8.0f" not in text
    with left_out_stages.without(["strength_reduction"]):
        without = _model(lambda v: F.sum(v, 1) / 8.0, optim.SGD(lr=0.1))
        assert "0.125f" not in emit(compile_model(without, "net"))["net.c"]


def _numbers(shape: tuple[int, ...], seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def _on_host(f: Any, x: Any, kernels: str = "ref") -> Any:
    """f(x) and the gradient of its sum, of compiled C."""
    v = ag.Input("x", x.shape)
    y = f(v)
    return ag.function([v], [y, ag.grad(F.sum(y), v)]).on_host(kernels=kernels)(x)


def _model(f: Any, rule: optim.Optimizer) -> ag.Model:
    x, t = ag.Input("x", (4, 3, 5)), ag.Input("t", (4, 5))
    w = ag.Param("w", _numbers((5,), 1))
    y = f(x * w)
    return ag.Model([x], [t], {"y": y}, F.mean(F.square(y - t)), rule)


def _trainer(w: Any, rule: optim.Optimizer) -> Any:
    x, t = ag.Input("x", (3, 5)), ag.Input("t", (3, 2))
    y = F.matmul(x, ag.Param("w", w))
    return ag.Model([x], [t], {"y": y}, nn.MSELoss()(y, t), rule).on_host()


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
