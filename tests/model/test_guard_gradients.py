"""guard="gradients": a step is made only if every new state is known to be finite before the first one is written."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import pytest
from graph_stages import rewritten

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.files import emit
from autodiff_gen.errors import AutodiffError
from autodiff_gen.ir.dependences import writers
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import STATE, Value, base
from autodiff_gen.ir.types import planned
from autodiff_gen.passes.training.finite_guard import Bounds
from autodiff_gen.report.explain import explain
from autodiff_gen.targets import board

pytestmark = pytest.mark.cc
REJECTED = r"the updates cannot be proved finite \(status -9\)"


def net(*layers, shape=(4, 6), optimizer=None, **options):
    return ag.Model.supervised(
        nn.Sequential(*layers),
        input=shape,
        loss=nn.MSELoss(),
        optimizer=optimizer or optim.SGD(lr=0.1),
        **options,
    )


class Recurrent(nn.Module):
    def __init__(self):
        self.gru = nn.GRU(6, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1])


class Words(nn.Module):
    def __init__(self):
        self.first = nn.Linear(6, 5)
        self.norm = nn.LayerNorm(5)
        self.last = nn.Linear(5, 2)

    def forward(self, x):
        return self.last(F.relu(self.norm(self.first(x))))


def dense():
    return nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)


def large():
    """Products above the size from which they are kernels."""
    return nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 30), nn.Sigmoid(), nn.Linear(30, 2)


def images():
    return (
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, padding=1, groups=4),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(64, 2),
    )


# name -> what makes the model, and the parameters that are 0 where inputs are huge, so that the loss stays small
MODELS = {
    "sgd": (lambda **o: net(*dense(), **o), ("0.weight",)),
    "one sample": (lambda **o: net(*large(), shape=(1, 6), **o), ("0.weight",)),
    "momentum": (lambda **o: net(*large(), optimizer=optim.SGD(lr=0.1, momentum=0.9), **o), ("0.weight",)),
    "decay, nesterov": (
        lambda **o: net(
            *dense(),
            optimizer=optim.SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
            schedule=optim.lr_scheduler.StepLR(3, 0.5),
            **o,
        ),
        ("0.weight",),
    ),
    "adam": (lambda **o: net(*large(), optimizer=optim.Adam(lr=0.1), **o), ("0.weight",)),
    "adamw": (lambda **o: net(*dense(), optimizer=optim.AdamW(lr=0.1), **o), ("0.weight",)),
    "rmsprop": (
        lambda **o: net(*dense(), optimizer=optim.RMSprop(lr=0.1, centered=True, momentum=0.5), **o),
        ("0.weight",),
    ),
    "adagrad": (lambda **o: net(*dense(), optimizer=optim.Adagrad(lr=0.1), **o), ("0.weight",)),
    "clipped": (lambda **o: net(*large(), clip_grad_norm=1.0, **o), ("0.weight",)),
    "averaged": (lambda **o: net(*dense(), ema=optim.EMA(0.9), **o), ("0.weight",)),
    "conv": (lambda **o: net(*images(), shape=(2, 1, 8, 8), **o), ("0.weight",)),
    "conv, adam": (
        lambda **o: net(*images(), shape=(2, 1, 8, 8), optimizer=optim.Adam(lr=0.01), **o),
        ("0.weight",),
    ),
    "batch norm": (
        lambda **o: net(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2), **o),
        ("0.weight",),
    ),
    "layer norm": (
        lambda **o: ag.Model.supervised(Words(), (4, 6), nn.MSELoss(), optim.Adam(lr=0.1), **o),
        ("first.weight",),
    ),
    "gru": (
        lambda **o: ag.Model.supervised(
            Recurrent(), (3, 5, 6), nn.MSELoss(), optim.SGD(lr=0.1, momentum=0.9), **o
        ),
        ("gru.weight_ih_l0",),
    ),
}


@cache
def trainers(name):
    """A trainer with guard="gradients", another with guard="loss"."""
    made = MODELS[name][0]
    return made(guard="gradients").on_host(), made(guard="loss").on_host()


def started(name):
    both = trainers(name)
    for trainer in both:
        trainer.init()
    return both


def bytes_of(trainer):
    return ctypes.string_at(ctypes.byref(trainer.memory), trainer.program.state_bytes)


def floats_of(trainer):
    return [a for a in trainer.state_dict().values() if a.dtype == np.float32]


def batch(trainer, rng, scale=1.0, target=1.0):
    x, y = (a for a in trainer.program.entries[0].args if a.role == "input" and not a.by_value)
    shapes = [tuple(getattr(d, "planned", d) for d in a.type.shape) for a in (x, y)]
    values = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    return values[0] * np.float32(scale), values[1] * np.float32(target)


@pytest.mark.parametrize("name", MODELS)
def test_good_steps_are_those_of_the_other_guard(name):
    proving, other = started(name)
    rng = np.random.default_rng(1)
    for _ in range(5):
        x, y = batch(proving, rng)
        assert proving.train_step(x, y) == other.train_step(x, y)
    assert bytes_of(proving) == bytes_of(other)


@pytest.mark.parametrize("name", MODELS)
def test_a_gradient_that_overflows_changes_nothing(name):
    """Inputs of 1e30 on weights that are 0, targets of 1e12: the loss is finite, and not so the gradient."""
    rng = np.random.default_rng(2)
    proving, other = started(name)
    first = batch(proving, rng)
    for trainer in (proving, other):
        trainer.train_step(*first)
        state = trainer.state_dict()
        zeros = {key: np.zeros_like(state[key]) for key in MODELS[name][1]}
        trainer.load_state_dict({**state, **zeros})
    before = bytes_of(proving)
    x, y = batch(proving, rng, 1e30, 1e12)
    for _ in range(2):
        with pytest.raises(AutodiffError, match=REJECTED):
            proving.train_step(x, y)
        assert bytes_of(proving) == before
    assert np.isfinite(other.train_step(x, y))
    assert not all(np.isfinite(a).all() for a in floats_of(other))
    again = batch(proving, rng)
    assert np.isfinite(proving.train_step(*again))
    assert all(np.isfinite(a).all() for a in floats_of(proving))


@pytest.mark.parametrize(
    "name", [n for n in MODELS if n not in ("sgd", "one sample", "conv", "clipped", "batch norm")]
)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_optimizer_state_that_is_not_finite_spoils_no_parameter(name, value):
    """The loss knows nothing of it, so that guard="loss" lets it through."""
    proving, other = started(name)
    step = batch(proving, np.random.default_rng(3))
    for trainer in (proving, other):
        trainer.train_step(*step)
    kept_by_optimizer = [s.name for s in proving.program.slots if s.role == "optimizer"]
    for key in kept_by_optimizer:
        array = proving.state_dict()[key]
        if array.dtype != np.float32 or not array.shape:
            continue
        for trainer in (proving, other):
            kept = trainer.state_dict()
            broken = array.copy()
            broken.reshape(-1)[-1] = value
            trainer.load_state_dict({**kept, key: broken})
            before = bytes_of(trainer)
            if trainer is proving:
                with pytest.raises(AutodiffError, match=REJECTED):
                    trainer.train_step(*step)
                assert bytes_of(trainer) == before
            else:
                trainer.train_step(*step)
                assert bytes_of(trainer) != before
            trainer.load_state_dict(kept)


@pytest.mark.parametrize("name", MODELS)
def test_whatever_is_accepted_stays_finite(name):
    """Numbers of all sizes: a step is rejected and changes nothing, or all of the new state is finite."""
    proving, _ = started(name)
    rng = np.random.default_rng(4)
    accepted = 0
    for _ in range(300):
        sizes = 10.0 ** rng.uniform(-30, 38, 3)
        x, y = batch(proving, rng, *(min(s, 1e37) for s in sizes[:2]))
        rate = {} if proving.program.default_lr is None else {"lr": float(10.0 ** rng.uniform(-10, 20))}
        before, state = bytes_of(proving), proving.state_dict()
        try:
            proving.train_step(x, y, **rate)
            accepted += 1
            assert all(np.isfinite(a).all() for a in floats_of(proving))
        except AutodiffError:
            assert bytes_of(proving) == before
        if rng.random() < 0.3:
            key = str(rng.choice([k for k in state if state[k].dtype == np.float32]))
            proving.load_state_dict({**state, key: rng.standard_normal(state[key].shape) * sizes[2]})
        if rng.random() < 0.1:
            proving.init()
    assert 10 < accepted < 290


def fed(graph, inputs, targets, seed):
    """Arrays for the graph: inputs and targets of one number each (None: random), random states."""
    rng = np.random.default_rng(seed)
    feeds = {}
    for v in (*graph.inputs, *graph.leaves(STATE)):
        state, shape = v.node.attrs.get("state"), planned(v.type.shape)
        number = inputs if v.name == "x" else targets if v.name == "target" else None
        feeds[v] = rng.standard_normal(shape) if number is None else np.full(shape, number)
        if v.name == "lr":
            feeds[v] = np.float64(0.5)
        elif state is not None and (
            "_sq" in state.name or "square" in state.name or state.name.endswith(".sum")
        ):
            feeds[v] = np.abs(feeds[v])
        elif state is not None and not shape:
            feeds[v] = np.float64(3.0)
    return feeds


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("inputs, targets", [(None, None), (3.0, 40.0), (1e4, -7.0)])
def test_no_update_exceeds_its_bound(name, inputs, targets):
    """Each state by itself, without the margin: equal samples add up, so that a bound is nearly reached."""
    graph = MODELS[name][0](guard="gradients").entries()[0]
    graph = rewritten(graph, until="fuse_optimizer")
    bounds = Bounds(graph)
    found = {s: bounds.of_update(s, new) for s, new in graph.updates.items()}
    roots = [b for each in found.values() for b in each if isinstance(b, Value)]
    feeds = fed(graph, inputs, targets, 9)
    values = dict(zip(roots, evaluate(roots, feeds, float_dtype="float64"), strict=True))
    new = dict(
        zip(graph.updates, evaluate(list(graph.updates.values()), feeds, float_dtype="float64"), strict=True)
    )
    old = {v.node.attrs["state"]: feeds[v] for v in graph.leaves(STATE)}
    for state, each in found.items():
        if state.type.dtype.kind == "f":
            bound = sum(float(values.get(b, b)) for b in each)
            changed = np.abs(new[state] - old.get(state, 0.0)).max()
            assert min(changed, np.abs(new[state]).max()) <= bound * (1 + 1e-9), state.name


def test_bounds_are_nearly_reached():
    """Four equal samples: the gradient of the first layer is 4 dz x, and so is its bound."""
    graph = net(nn.Linear(6, 5), shape=(4, 6), guard="gradients").entries()[0]
    graph = rewritten(graph, until="fuse_optimizer")
    bounds = Bounds(graph)
    weight = next(s for s in graph.updates if s.name == "0.weight")
    (bound,) = bounds.of_update(weight, graph.updates[weight])
    feeds = fed(graph, 1e3, 1e6, 9)
    feeds[graph.inputs[-1]] = np.float64(1.0)
    most, new = evaluate([bound, graph.updates[weight]], feeds, float_dtype="float64")
    old = next(feeds[v] for v in graph.leaves(STATE) if v.node.attrs["state"] is weight)
    assert 0.99 * most < np.abs(new - old).max() <= most


@pytest.mark.parametrize("name", MODELS)
def test_every_writer_comes_after_the_bound(name):
    plan = trainers(name)[0].program.entries[0].plan
    numbers = {step.node: step.number for step in plan.steps}
    bound = numbers[base(plan.graph.bound).node]
    assert numbers[base(plan.graph.outputs["loss"]).node] <= bound
    assert all(numbers[node] > bound for node in writers(plan.graph).values())


def test_small_batches_that_are_summed_and_applied():
    model = net(*dense(), accumulate="mean", guard="gradients")
    trainer, other = model.on_host(), net(*dense(), accumulate="mean").on_host()
    rng = np.random.default_rng(5)
    good = batch(trainer, rng)
    for t in (trainer, other):
        t.accumulate(*good)
        t.apply()
    assert bytes_of(trainer) == bytes_of(other)
    state = trainer.state_dict()
    trainer.load_state_dict({**state, "0.weight": np.zeros_like(state["0.weight"])})
    before = bytes_of(trainer)
    with pytest.raises(AutodiffError, match=REJECTED):
        trainer.accumulate(*batch(trainer, rng, 1e30, 1e12))
    assert bytes_of(trainer) == before
    trainer.accumulate(*good)
    kept = trainer.state_dict()
    broken = np.full_like(kept["0.weight.grad"], np.inf)
    trainer.load_state_dict({**kept, "0.weight.grad": broken})
    before = bytes_of(trainer)
    with pytest.raises(AutodiffError, match=REJECTED):
        trainer.apply()
    assert bytes_of(trainer) == before


def test_a_step_in_parts_is_proved_too():
    trainer = net(
        *large(), optimizer=optim.SGD(lr=0.1, momentum=0.9), guard="gradients", split=True
    ).on_host()
    whole = trainers("momentum")[0]
    whole.init()
    rng = np.random.default_rng(6)
    part = trainer.library["model_train_part"]

    def in_parts(x, y):
        loss = ctypes.c_float()
        arrays = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
        n, lr = ctypes.c_int32(len(x)), ctypes.c_float(0.1)
        words = [ctypes.byref(trainer.memory), *arrays, n, lr, ctypes.byref(loss)]
        status = 1
        while status == 1:
            status = part(*words)
        return status, loss.value

    for _ in range(3):
        x, y = batch(trainer, rng)
        assert in_parts(x, y) == (0, whole.train_step(x, y))
        assert bytes_of(trainer) == bytes_of(whole)
    state = trainer.state_dict()
    trainer.load_state_dict({**state, "0.weight": np.zeros_like(state["0.weight"])})
    before = bytes_of(trainer)
    assert in_parts(*batch(trainer, rng, 1e30, 1e12))[0] == -9
    assert bytes_of(trainer) == before
    trainer.load_state_dict(state)
    x, y = batch(trainer, rng)
    assert in_parts(x, y) == (0, whole.train_step(x, y))


@pytest.mark.parametrize("name", MODELS)
def test_the_cost_is_told_and_is_that_of_gradients_of_outputs(name):
    """Not of gradients of parameters; a few scalars in addition."""
    proving, plain = (t.program for t in trainers(name))
    cost = proving.struct_bytes - plain.struct_bytes
    assert proving.guard_bytes == cost and plain.guard_bytes is None
    told = f'guard="gradients" takes {abs(cost)} bytes {"more" if cost >= 0 else "less"} than guard="loss"'
    assert told in emit(proving)["model.h"] and "guard=" not in emit(plain)["model.h"]
    outputs = {"conv": 2 * 4 * (16 + 64), "conv, adam": 2 * 4 * (16 + 64), "gru": 3 * 5 * 12}
    assert cost <= 4 * (outputs.get(name, 4 * (40 + 30 + 2)) + 16)


def test_explain_tells_the_cost():
    told = explain(trainers("sgd")[0].program, board.load("stm32"), None)
    assert 'bytes more than guard="loss"' in told
