"""Gradients summed over small batches, and averages of the parameters, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.errors import ModelError

BATCH, FEATURES, CLASSES = 8, 5, 3


def net(nn: Any, norm: bool = False) -> Any:
    layers = [nn.Linear(FEATURES, 12), nn.BatchNorm1d(12)] if norm else [nn.Linear(FEATURES, 12)]
    return nn.Sequential(*layers, nn.Tanh(), nn.Linear(12, CLASSES))


def model(norm: bool = False, rate: Any = None, **options: Any) -> ag.Model:
    rate = optim.SGD(lr=0.1) if rate is None else rate
    loss = nn.CrossEntropyLoss(reduction="sum" if options.get("accumulate") == "sum" else "mean")
    return ag.Model.supervised(net(nn, norm), input=(BATCH, FEATURES), loss=loss, optimizer=rate, **options)


def data(k: int, rows: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    return rng.normal(size=(rows, FEATURES)).astype(np.float32), rng.integers(0, CLASSES, rows)


def twin_of(trainer: Any, norm: bool = False) -> Any:
    import torch

    twin = net(torch.nn, norm)
    state = trainer.state_dict()
    twin.load_state_dict({k: torch.tensor(state[k]) for k in twin.state_dict()})
    return twin


def assert_equal(trainer: Any, twin: Any, tolerance: float = 1e-5) -> None:
    state = trainer.state_dict()
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(state[name], value.numpy(), rtol=tolerance, atol=tolerance, err_msg=name)


def pieces(x: Any, label: Any, sizes: list[int]) -> list[tuple[Any, Any]]:
    ends = np.cumsum(sizes)
    return [(x[b - a : b], label[b - a : b]) for a, b in zip(sizes, ends, strict=True)]


ADAM: dict[str, Any] = {"rate": optim.Adam(lr=0.01), "clip_grad_norm": 0.5}


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("options", [{}, ADAM], ids=["sgd", "adam"])
def test_small_batches_equal_one_large_one(reduction: str, options: dict[str, Any]) -> None:
    import torch

    trainer = model(accumulate=reduction, **options).on_host()
    twin = twin_of(trainer)
    step = (
        torch.optim.Adam(twin.parameters(), lr=0.01)
        if options
        else torch.optim.SGD(twin.parameters(), lr=0.1)
    )
    loss_of = torch.nn.CrossEntropyLoss(reduction=reduction)
    for k, sizes in enumerate([[8, 8, 8, 8], [1, 8, 3], [8], [2, 5, 7, 8, 1]]):
        x, label = data(k, sum(sizes))
        for a, b in pieces(x, label, sizes):
            expected = loss_of(twin(torch.tensor(a)), torch.tensor(b)).item()
            assert trainer.accumulate(a, b) == pytest.approx(expected, rel=1e-5)
        trainer.apply()
        loss = loss_of(twin(torch.tensor(x)), torch.tensor(label))
        step.zero_grad()
        loss.backward()
        if options:
            torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        step.step()
        assert_equal(trainer, twin, 2e-5)
        assert all(
            not v.any() for n, v in trainer.state_dict().items() if n.endswith((".grad", "grad.count"))
        )


def _mask(m: Any) -> Any:
    return m.float() if hasattr(m, "float") else F.to(m, "f32")


IGNORED = -100
WEIGHTS = np.float32([0.3, 2.0, 0.7])
# Losses whose means are divided by data: functions of F or torch.nn.functional (f), the logits, the labels
# and the weights of the classes. The sums of the largest batch equal the sums of the small ones.
MEANS: dict[str, Callable[..., Any]] = {
    "weight": lambda f, z, y, w: f.cross_entropy(z, y, w, label_smoothing=0.1),
    "nll_loss": lambda f, z, y, w: f.nll_loss(f.log_softmax(z, 1), y, w),
    "ignore_index": lambda f, z, y, w: f.cross_entropy(z, y),
    "mask": lambda f, z, y, w: (
        (f.cross_entropy(z, y.clamp(min=0), reduction="none") * _mask(y >= 0)).sum()
        / (_mask(y >= 0).sum() + 1e-8)
    ),
    "mean of a mask": lambda f, z, y, w: (
        (f.cross_entropy(z, y, reduction="none") * _mask(y > 0)).mean() / _mask(y > 0).mean().clamp(min=0.25)
    ),
    "three means": lambda f, z, y, w: (
        f.cross_entropy(z, y, w) + 0.1 * (z * z).mean() - f.cross_entropy(z * 2.0, y) * 0.3
    ),
}


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize(
    "name, guard", zip(MEANS, ["loss", "gradients", "gradients", "loss", "loss", "loss"], strict=True)
)
def test_means_over_what_the_data_say_equal_those_of_one_large_batch(name: str, guard: str) -> None:
    """... with micro-batches that have only ignored labels, and where the whole has only these."""
    import torch

    of_all = MEANS[name]
    x = ag.Input("x", (BATCH, FEATURES), batch_axis=0)
    y = ag.Input("y", (BATCH,), dtype="s32", batch_axis=0)
    network, adam = net(nn), optim.Adam(lr=0.01, weight_decay=0.1)
    z = network(x)
    trainer = ag.Model(
        [x], [y], {"z": z}, of_all(F, z, y, WEIGHTS), adam, accumulate="mean", guard=guard, clip_grad_norm=0.5
    ).on_host()
    twin = twin_of(trainer)
    step = torch.optim.Adam(twin.parameters(), lr=0.01, weight_decay=0.1)
    for k, (sizes, missing) in enumerate([([8, 1, 3], 8), ([4, 8], 0), ([2, 3], 5)]):
        values, labels = data(k, sum(sizes))
        labels[:missing] = IGNORED
        for a, b in pieces(values, labels, sizes):
            assert np.isfinite(trainer.accumulate(a, b))
        trainer.apply()
        loss = of_all(
            torch.nn.functional, twin(torch.tensor(values)), torch.tensor(labels), torch.tensor(WEIGHTS)
        )
        step.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        step.step()
        assert_equal(trainer, twin, 2e-5)


@pytest.mark.cc
@pytest.mark.torch
def test_forward_states_move_with_every_small_batch() -> None:
    import torch

    trainer = model(norm=True, accumulate="mean").on_host()
    twin = twin_of(trainer, norm=True)
    step = torch.optim.SGD(twin.parameters(), lr=0.2)
    for k in range(3):
        x, label = data(k, 16)
        step.zero_grad()
        for a, b in pieces(x, label, [8, 8]):
            trainer.accumulate(a, b)
            (torch.nn.functional.cross_entropy(twin(torch.tensor(a)), torch.tensor(b)) / 2).backward()
        trainer.apply(lr=0.2)
        step.step()
    assert trainer.state_dict()["1.num_batches_tracked"] == 6
    assert_equal(trainer, twin)


@pytest.mark.cc
def test_a_checkpoint_between_the_halves(tmp_path: Path) -> None:
    first, second = (model(accumulate="mean", ema=optim.EMA(0.9)).on_host() for _ in range(2))
    x, label = data(0, 8)
    first.train_step(x, label)  # both ways of training share their states
    first.accumulate(x[:3], label[:3])
    first.save(tmp_path / "half")
    second.load(tmp_path / "half")
    for trainer in (first, second):
        trainer.accumulate(x[3:], label[3:])
        trainer.apply()
    for name, value in first.state_dict().items():
        np.testing.assert_array_equal(second.state_dict()[name], value)


@pytest.mark.cc
def test_apply_without_gradients_changes_nothing() -> None:
    trainer = model(accumulate="mean").on_host()
    before = trainer.state_dict()
    trainer.apply()
    for name, value in trainer.state_dict().items():
        np.testing.assert_array_equal(value, before[name])


def test_products_are_added_where_the_sums_are_stored() -> None:
    program = compile_model(model(accumulate="mean"), "m")
    plain = compile_model(model(), "m")
    weights = sum(s.type.bytes for s in plain.slots)
    assert program.state_bytes == plain.state_bytes + weights + 4
    assert program.arena_words <= plain.arena_words + 8  # no gradient is stored beside its sum
    text = emit(program)["m.c"]
    accumulate = text.split("int m_accumulate")[1].split("int m_apply")[0]
    assert "t->layer0_weight_grad, 5, 12, 5, n, 1.0f, 1.0f, NULL);" in accumulate
    header = emit(program)["m.h"]
    assert "int m_apply(m_trainer *t, float lr);" in header
    assert (
        "int m_accumulate(m_trainer *t, const float *x, const uint8_t *label, int32_t n, float *loss);"
        in header
    )


@pytest.mark.cc
@pytest.mark.torch
def test_a_batch_of_one_size_is_counted() -> None:
    import torch

    x, w = ag.Input("x", (2, 3)), ag.Param("w", np.array([0.5, -1.0, 2.0], dtype=np.float32))
    loss = F.mean(F.square(F.sum(x * w, 1)))
    trainer = ag.Model([x], [], {"y": x * w}, loss, optim.SGD(lr=0.1), accumulate="mean").on_host()
    rows = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    for k in range(3):
        trainer.accumulate(rows[2 * k : 2 * k + 2])
    trainer.apply()
    twin = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    (torch.tensor(rows) * twin).sum(1).square().mean().backward()
    expected = (twin - 0.1 * twin.grad).detach().numpy()
    np.testing.assert_allclose(trainer.state_dict()["w"], expected, rtol=1e-5, atol=1e-6)


# Averages


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("way", ["train_step", "accumulate"])
def test_averages_equal_pytorchs(way: str) -> None:
    import torch
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    accumulate = "mean" if way == "accumulate" else None
    trainer = model(norm=True, accumulate=accumulate, ema=optim.EMA(decay=0.8)).on_host()
    twin = twin_of(trainer, norm=True)
    averaged = AveragedModel(twin, multi_avg_fn=get_ema_multi_avg_fn(0.8))
    step = torch.optim.SGD(twin.parameters(), lr=0.1)
    for k in range(6):
        x, label = data(k, BATCH)
        loss = torch.nn.functional.cross_entropy(twin(torch.tensor(x)), torch.tensor(label))
        step.zero_grad()
        loss.backward()
        step.step()
        averaged.update_parameters(twin)
        if way == "accumulate":
            trainer.accumulate(x, label)
            trainer.apply()
        else:
            trainer.train_step(x, label)
        state = trainer.state_dict()
        for name, value in averaged.state_dict().items():
            is_buffer = "running" in name or "tracked" in name  # which the model has already
            ours = state[name.removeprefix("module.") if is_buffer else f"ema.{name.removeprefix('module.')}"]
            np.testing.assert_allclose(ours, value.numpy(), rtol=2e-5, atol=2e-5, err_msg=name)
        expected = averaged.eval()(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(trainer.predict_averaged(x), expected, rtol=1e-4, atol=1e-4)
        averaged.train()
    assert np.abs(trainer.predict(x) - expected).max() > 1e-3


@pytest.mark.cc
def test_averages_begin_as_the_weights_do() -> None:
    trainer = model(ema=optim.EMA()).on_host()
    for seed in (0, 5):
        trainer.init(seed)
        state = trainer.state_dict()
        for name in ("0.weight", "0.bias", "2.weight"):
            np.testing.assert_array_equal(state[f"ema.{name}"], state[name])
    x, _ = data(0, 4)
    np.testing.assert_array_equal(trainer.predict_averaged(x), trainer.predict(x))


def test_given_weights_are_in_flash_once() -> None:
    x, w = ag.Input("x", (2, 3)), ag.Param("w", np.arange(3.0))
    made = ag.Model([x], [], {"y": x * w}, F.sum(x * w), optim.SGD(lr=0.1), ema=optim.EMA())
    assert emit(compile_model(made, "m"))["m_params.c"].count("static const float") == 1


def frozen() -> ag.Model:
    made = net(nn)
    made[0].requires_grad_(False)
    rate = optim.SGD(lr=0.1)
    loss = nn.CrossEntropyLoss()
    return ag.Model.supervised(
        made, input=(BATCH, FEATURES), loss=loss, optimizer=rate, accumulate="mean", ema=optim.EMA()
    )


def test_frozen_parameters_have_neither_sum_nor_average() -> None:
    names = [s.name for s in frozen().states]
    assert names == [
        *("2.weight", "2.bias", "ema.2.weight", "ema.2.bias", "ema.n_averaged"),
        *("2.weight.grad", "2.bias.grad", "grad.count"),
    ]


def clash() -> ag.Model:
    x, w, v = ag.Input("x", (2, 3)), ag.Param("w", np.ones(3)), ag.Param("w.grad", np.ones(3))
    return ag.Model([x], [], {"y": x * w}, F.sum(x * w * v), optim.SGD(lr=0.1), accumulate="sum")


REJECTED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: model(accumulate=True),
        r'^accumulate=True; expected the reduction of the loss, "mean" or "sum"$',
    ),
    (lambda: model(ema=0.9), r"^ema: expected optim.EMA, got 0.9$"),
    (lambda: optim.EMA(1.5), r"^optim.EMA: decay=1.5 must be a number from 0 to 1$"),
    (clash, r"^two states are called 'w.grad'; rename the parameter or buffer$"),
]


@pytest.mark.parametrize("build, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build()


@pytest.mark.cc
def test_a_model_without_them_says_so() -> None:
    trainer = model().on_host()
    with pytest.raises(
        ModelError, match=r"^model has no accumulate: the model was created without accumulate=$"
    ):
        trainer.accumulate(*data(0, 2))
    with pytest.raises(
        ModelError, match=r"^model has no predict_averaged: the model was created without ema=$"
    ):
        trainer.predict_averaged(data(0, 2)[0])


@pytest.mark.cc
@pytest.mark.torch
def test_convolutions_add_into_their_sums() -> None:
    import torch

    def images(nn: Any) -> Any:
        return nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 3)
        )

    made = ag.Model.supervised(
        images(nn),
        input=(4, 2, 4, 4),
        loss=nn.CrossEntropyLoss(),
        optimizer=optim.SGD(lr=0.1),
        accumulate="mean",
    )
    step = emit(compile_model(made, "m"))["m.c"].split("int m_accumulate")[1].split("int m_apply")[0]
    (call,) = [line for line in step.splitlines() if "ag_conv2d_dw_f32_ref(" in line]
    assert "t->layer0_weight_grad" in call and call.endswith("1.0f, 1.0f);")
    trainer, twin = made.on_host(), images(torch.nn)
    twin.load_state_dict({k: torch.tensor(trainer.state_dict()[k]) for k in twin.state_dict()})
    rate = torch.optim.SGD(twin.parameters(), lr=0.1)
    rng = np.random.default_rng(2)
    for sizes in ([4, 4], [1, 4, 2]):
        n = sum(sizes)
        x, label = rng.normal(size=(n, 2, 4, 4)).astype(np.float32), rng.integers(0, 3, n)
        for a, b in pieces(x, label, sizes):
            trainer.accumulate(a, b)
        trainer.apply()
        rate.zero_grad()
        torch.nn.functional.cross_entropy(twin(torch.tensor(x)), torch.tensor(label)).backward()
        rate.step()
        assert_equal(trainer, twin)
