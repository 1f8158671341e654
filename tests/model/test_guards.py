"""Steps that are rejected: whatever is not finite comes in or out, every state keeps its bytes."""

from __future__ import annotations

import ctypes
import re
from types import SimpleNamespace

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.errors import AutodiffError, ModelError
from autodiff_gen.ir.dependences import writers
from autodiff_gen.ir.node import base
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import installation


def classifier(*layers, batch=3, **options):
    net = nn.Sequential(*layers)
    optimizer = options.pop("optimizer", None) or optim.SGD(lr=0.1, momentum=0.9)
    return ag.Model.supervised(
        net, input=(batch, 6), loss=nn.CrossEntropyLoss(), optimizer=optimizer, **options
    )


def regression(**options):
    net = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    return ag.Model.supervised(net, input=(3, 6), loss=nn.MSELoss(), optimizer=optim.Adam(lr=0.1), **options)


MODELS = {
    "perceptron": lambda: classifier(nn.Linear(6, 5), nn.Sigmoid(), nn.Linear(5, 4)),
    "one layer": lambda: classifier(nn.Linear(6, 4), batch=1, optimizer=optim.SGD(lr=0.1)),
    "batch norm": lambda: classifier(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 4)),
    "dropout": lambda: classifier(nn.Linear(6, 5), nn.Dropout(0.5), nn.Linear(5, 4)),
    "clipped": lambda: classifier(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4), clip_grad_norm=1.0),
    "averaged": lambda: classifier(nn.Linear(6, 4), ema=optim.EMA(0.9)),
    "accumulated": lambda: classifier(nn.Linear(6, 4), accumulate="mean"),
    "masked inputs": regression,
}


def bytes_of(trainer):
    return ctypes.string_at(ctypes.byref(trainer.memory), trainer.program.state_bytes)


def batch(model, seed=0):
    rng = np.random.default_rng(seed)
    rows = model.batch
    x = rng.standard_normal((rows, 6)).astype(np.float32)
    if model.targets[0].name == "label":
        return x, rng.integers(0, 4, rows).astype(np.uint8)
    return x, rng.standard_normal((rows, 2)).astype(np.float32)


@pytest.mark.cc
@pytest.mark.parametrize("name", MODELS)
def test_a_rejected_step_changes_no_state(name):
    """And the steps after it equal the steps of a trainer that never saw it."""
    model = MODELS[name]()
    trainer, other = model.on_host(), model.on_host()
    for step in range(6):
        good = batch(model, step)
        assert trainer.train_step(*good) == other.train_step(*good)
        before = bytes_of(trainer)
        for bad in (np.nan, np.inf, -np.inf):
            x, target = batch(model, step)
            x[step % len(x), step % 6] = bad
            with pytest.raises(
                AutodiffError, match=r"input, a target or the learning rate is not finite \(status -6\)"
            ):
                trainer.train_step(x, target)
        with pytest.raises(AutodiffError, match="status -6"):
            trainer.train_step(*good, lr=float("nan"))
        assert bytes_of(trainer) == before
        if good[1].dtype == np.float32:
            with pytest.raises(AutodiffError, match="status -6"):
                trainer.train_step(good[0], good[1] * np.float32(np.inf))
        state = trainer.state_dict()
        first = next(iter(state))
        trainer.load_state_dict({**state, first: np.full_like(state[first], np.nan)})
        broken = bytes_of(trainer)
        with pytest.raises(AutodiffError, match=r"the loss is not finite \(status -7\)"):
            trainer.train_step(*good)
        assert bytes_of(trainer) == broken
        trainer.load_state_dict(state)


@pytest.mark.cc
def test_accumulating_is_guarded_too():
    model = MODELS["accumulated"]()
    trainer = model.on_host()
    good = batch(model)
    trainer.accumulate(*good)
    before = bytes_of(trainer)
    with pytest.raises(AutodiffError, match="status -6"):
        trainer.accumulate(good[0] * np.float32(np.nan), good[1])
    assert bytes_of(trainer) == before


def examples():
    """Names of the examples that train; the others are functions, which have no state."""
    programs = sorted(installation.examples().glob("*/main.c"))
    return [p.parent.name for p in programs if "_train_step(" in p.read_text()]


def guarded_entries(model):
    program = compile_model(model, "net")
    return [e for e in program.entries if e.plan.graph.guard is not None]


@pytest.mark.parametrize("name", [*MODELS, *examples()])
def test_the_loss_is_known_before_any_state_is_written(name):
    model = MODELS[name]() if name in MODELS else load_model(name)[0]
    for entry in guarded_entries(model):
        graph = entry.plan.graph
        numbers = {step.node: step.number for step in entry.plan.steps}
        loss = numbers[base(graph.outputs["loss"]).node]
        assert entry.name in ("train_step", "accumulate")
        assert all(numbers[node] > loss for node in writers(graph).values())


def test_a_buffer_whose_new_value_the_loss_reads_waits_too():
    x, centre = ag.Input("x", (4,)), ag.Buffer("centre", np.zeros(4, np.float32))
    w = ag.Param("w", np.ones(4, np.float32))
    new = centre * 0.5 + x * 0.5
    loss = F.sum(F.with_updates(w * new, {centre: new}))
    model = ag.Model([x], [], {"y": w * centre}, loss, optim.SGD(lr=0.1))
    (entry,) = guarded_entries(model)
    numbers = {step.node: step.number for step in entry.plan.steps}
    loss_step = numbers[base(entry.plan.graph.outputs["loss"]).node]
    assert all(numbers[node] > loss_step for node in writers(entry.plan.graph).values())


def test_without_a_guard_nobody_looks():
    text = emit(compile_model(regression(guard=None), "net"))
    assert "ag_all_finite" not in text["net.c"] and "ERR_LOSS" not in text["net.h"]
    assert "ag_all_finite" in emit(compile_model(regression(), "net"))["net.c"]
    with pytest.raises(ModelError, match="guard='los'; known: 'loss', 'gradients', None"):
        regression(guard="los")


@pytest.mark.cc
@pytest.mark.parametrize("name", ["perceptron", "batch norm", "dropout", "one layer"])
def test_a_step_in_parts_is_the_same_step(name):
    """And between its parts everything else answers that the trainer is busy."""
    options = {"one layer": {"batch": 1}}.get(name, {})
    layers = {
        "perceptron": (nn.Linear(6, 5), nn.Sigmoid(), nn.Linear(5, 4)),
        "batch norm": (nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 4)),
        "dropout": (nn.Linear(6, 5), nn.Dropout(0.5), nn.Linear(5, 4)),
        "one layer": (nn.Linear(6, 4),),
    }[name]
    trainer = classifier(*layers, split=True, **options).on_host()
    whole = classifier(*layers, **options).on_host()
    assert trainer.nbytes == whole.nbytes + 4
    part = trainer.library["model_train_part"]
    for step in range(4):
        x, label = batch(
            SimpleNamespace(batch=whole.program.batch, targets=[SimpleNamespace(name="label")]), step
        )
        loss = ctypes.c_float()
        arrays = [ctypes.c_void_p(a.ctypes.data) for a in (x, label)]
        rows = [ctypes.c_int32(len(x))] if len(x) > 1 else []
        words = [ctypes.byref(trainer.memory), *arrays, *rows, ctypes.c_float(0.1), ctypes.byref(loss)]
        parts = 1
        while part(*words) == 1:
            parts += 1
            for busy, arguments in ((trainer.predict, (x,)), (trainer.train_step, (x, label))):
                with pytest.raises(AutodiffError, match=r"a step is not finished \(status -8\)"):
                    busy(*arguments)
        assert parts == len(next(e for e in trainer.program.entries if e.name == "train_step").plan.steps)
        assert loss.value == whole.train_step(x, label)
        assert bytes_of(trainer) == bytes_of(whole)
        assert np.array_equal(trainer.predict(x), whole.predict(x))
        assert trainer.train_step(x, label) == whole.train_step(x, label)


@pytest.mark.cc
@pytest.mark.parametrize(
    "layers",
    [
        lambda: (nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4)),
        lambda: (nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 4)),
    ],
    ids=["perceptron", "batch norm"],
)
def test_a_step_is_abandoned_until_its_updates_begin(layers):
    model = classifier(*layers(), split=True)
    trainer, whole = model.on_host(), classifier(*layers()).on_host()
    header = emit(trainer.program)["model.h"]
    most = int(re.search(r"MODEL_PARTS_TO_ABORT (\d+)", header)[1])
    parts = int(re.search(r"MODEL_PARTS (\d+)", header)[1])
    x, label = batch(model)
    loss = ctypes.c_float()
    arrays = [ctypes.c_void_p(a.ctypes.data) for a in (x, label)]
    words = [
        ctypes.byref(trainer.memory),
        *arrays,
        ctypes.c_int32(3),
        ctypes.c_float(0.1),
        ctypes.byref(loss),
    ]
    part, predicted = trainer.library["model_train_part"], whole.predict(x)
    before = trainer.state_dict()
    assert 0 < most < parts
    for done in range(most + 1):
        for _ in range(done):
            assert part(*words) == 1
        trainer.abort()
        assert all(np.array_equal(before[k], v) for k, v in trainer.state_dict().items())
        assert np.array_equal(trainer.predict(x), predicted)
    for done in range(1, parts):
        assert part(*words) == 1
        if done > most:
            with pytest.raises(AutodiffError, match=r"abort: a step is not finished \(status -8\)"):
                trainer.abort()
    assert part(*words) == 0 and loss.value == whole.train_step(x, label)
    assert bytes_of(trainer) == bytes_of(whole)
    assert trainer.library["model_abort"](None) == -1


@pytest.mark.cc
def test_checkpoints_wait_and_a_rejected_step_is_over(tmp_path):
    model = classifier(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4), split=True)
    trainer = model.on_host()
    trainer.save(tmp_path / "whole")
    x, label = batch(model)
    part = trainer.library["model_train_part"]
    loss = ctypes.c_float()

    def call():
        arrays = [ctypes.c_void_p(a.ctypes.data) for a in (x, label)]
        words = [
            ctypes.byref(trainer.memory),
            *arrays,
            ctypes.c_int32(3),
            ctypes.c_float(0.1),
            ctypes.byref(loss),
        ]
        return part(*words)

    assert call() == 1
    for busy in (lambda: trainer.save(tmp_path / "no"), lambda: trainer.load(tmp_path / "whole")):
        with pytest.raises(AutodiffError, match="a step is not finished"):
            busy()
    trainer.init()  # begins anew, whatever was under way
    state = trainer.state_dict()
    trainer.load_state_dict({**state, "0.weight": np.full_like(state["0.weight"], np.nan)})
    status = call()
    while status == 1:
        status = call()
    assert status == -7
    trainer.load_state_dict(state)
    trainer.train_step(x, label)
