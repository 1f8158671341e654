"""Permutes propagate and cancel without changing a value, and parameters are stored as their readers want them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_c import Running, expected, library_of, program_of
from random_functions import Case, close

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import init, nn, optim
from autodiff_gen.check.gradcheck import Comparison, Finding, check
from autodiff_gen.errors import DataError, GraphError, ShapeError
from autodiff_gen.ir.build import apply, make_input, make_state
from autodiff_gen.ir.graph import Graph, State
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value, topological
from autodiff_gen.ir.parameter_layout import Storage
from autodiff_gen.ir.types import Dim, Type, bound, f32, planned_size
from autodiff_gen.ir.verifier import verify
from autodiff_gen.passes.layout.layout_assignment import Layouts, assign_layouts, propagated

BATCH = 3


def count(roots: list[Value], op: str) -> int:
    return sum(node.op.name == op for node in topological(roots))


# Random graphs

KINDS = ["permute"] * 3 + ["two"] * 2
KINDS += ["one", "reduce", "index", "merge", "split", "broadcast", "where", "matmul", "window", "join"]


@dataclass
class Drawn:
    """A random graph of permutes, reshapes, elementwise ops, reductions and products, with arrays for its leaves."""

    seed: int
    feeds: dict[Value, Any] = field(default_factory=dict)
    pool: list[Value] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random, self.numbers = random.Random(self.seed), np.random.default_rng(self.seed)
        n = Dim(1, BATCH)
        for rank in (2, 3):
            self.leaf(make_input(f"x{rank}", Type(f32, (n, *self.extents(rank)))))
        self.state(self.extents(3))
        while len(self.pool) < 16:
            try:
                v = self.step()
            except ShapeError:
                continue
            if planned_size(v.shape) <= 400 and sum(isinstance(d, Dim) for d in v.shape) < 2:
                self.pool.append(v)

    @property
    def roots(self) -> list[Value]:
        return self.pool[-3:]

    def extents(self, rank: int) -> tuple[int, ...]:
        return tuple(self.random.choice((1, 2, 3, 4)) for _ in range(rank))

    def leaf(self, v: Value) -> Value:
        self.feeds[v] = self.numbers.uniform(-1, 1, bound(v.shape, BATCH))
        self.pool.append(v)
        return v

    def state(self, shape: tuple[int, ...]) -> Value:
        return self.leaf(make_state(State(f"w{len(self.feeds)}", Type(f32, shape), None)))

    def step(self) -> Value:
        r = self.random
        x = self.pool[max(r.randrange(len(self.pool)), r.randrange(len(self.pool)))]
        kind = r.choice(KINDS)
        if kind == "permute":
            return F.permute(x, r.sample(range(x.ndim), x.ndim))
        if kind == "two":
            return apply(r.choice(("add", "mul")), x, r.choice(self.pool))
        if kind == "one":
            return F.tanh(x)
        if kind == "where":
            return F.where(x > 0.0, x, r.choice(self.pool))
        if kind == "reduce":
            axes = tuple(i for i in range(x.ndim) if r.random() < 0.4)
            reduce: Callable[..., Value] = r.choice((F.sum, F.mean, F.amax))
            return reduce(x, axes or None, keepdim=r.random() < 0.5)
        if kind == "broadcast":
            return F.broadcast_to(x, (r.choice((2, 3)), *x.shape))
        if x.ndim == 0:
            raise ShapeError("has no axis")
        axis = r.randrange(x.ndim)
        if kind == "window":
            if isinstance(x.shape[axis], Dim):
                raise ShapeError("has no window")
            return F.flip(x, (axis,)) if r.random() < 0.4 else F.narrow(x, axis, x.shape[axis] // 2, 1)
        if kind == "join":
            fitting = [v for v in self.pool if same_but(v.shape, x.shape, axis)]
            return F.cat([x, r.choice(fitting), x], axis)
        if kind == "index":
            return apply("to_f32", F.argmax(x, axis))
        if kind == "merge":
            return F.flatten(x, axis, r.randrange(axis, x.ndim))
        if kind == "split":
            extent = x.shape[axis]
            cut = (2, extent // 2) if isinstance(extent, int) and extent % 2 == 0 else (extent, 1)
            return F.reshape(x, (*x.shape[:axis], *cut, *x.shape[axis + 1 :]))
        return self.product(x)

    def product(self, x: Value) -> Value:
        """Axes shuffled and flattened, then a weight, as between convolutions and a linear layer."""
        r = self.random
        if x.ndim < 2 or not isinstance(x.shape[0], Dim):
            raise ShapeError("has no rows")
        x = F.permute(x, (0, *r.sample(range(1, x.ndim), x.ndim - 1)))
        x = F.flatten(F.tanh(x) if r.random() < 0.5 else x, 1)
        x = x * self.random.choice((1.0, 0.5))
        columns, out = x.shape[1], r.choice((1, 2, 5))
        assert isinstance(columns, int)
        if r.random() < 0.5:
            return F.matmul(x, self.state((columns, out)))
        return F.matmul(x, self.state((out, columns)).T)


def same_but(a: Any, b: Any, axis: int) -> bool:
    return len(a) == len(b) and all(d == e for k, (d, e) in enumerate(zip(a, b, strict=True)) if k != axis)


def rows(feeds: dict[Value, Any], n: int) -> dict[Value, Any]:
    return {v: a[tuple(slice(e) for e in bound(v.shape, n))] for v, a in feeds.items()}


def stored_feeds(feeds: dict[Value, Any], done: Layouts) -> dict[Value, Any]:
    """The feeds of the graph with layouts."""
    out = dict(feeds)
    for v, array in feeds.items():
        new = done.states.get(v.node.attrs.get("state"))  # type: ignore[arg-type]
        if new is not None:
            out[new] = new.node.attrs["state"].stored(array)
    return out


@pytest.mark.parametrize("may_store", [True, False])
def test_random_graphs_mean_the_same(may_store: bool) -> None:
    permutes, stored, verified = 0, 0, 0
    for seed in range(250):
        drawn = Drawn(seed)
        done = propagated(drawn.roots, may_store)
        feeds = stored_feeds(drawn.feeds, done)
        for n in range(1, BATCH + 1):
            before = evaluate(drawn.roots, rows(drawn.feeds, n), n, "float64")
            after = evaluate(done.roots, rows(feeds, n), n, "float64")
            for a, b in zip(before, after, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12, err_msg=f"seed {seed}, n = {n}")
        permutes += count(drawn.roots, "permute") - count(done.roots, "permute")
        stored += len(done.states)
        verified += is_verified(drawn.roots) and is_verified(done.roots)
    assert permutes > 30 and verified > 50 and (stored > 10) == may_store


def is_verified(roots: list[Value]) -> bool:
    """Whether the graph could be compiled; one that settling made invalid raises."""
    leaves = [n.results[0] for n in topological(roots) if n.op.name == "input"]
    graph = Graph("g", tuple(leaves), {f"out{i}": v for i, v in enumerate(roots)})
    try:
        verify(graph)
    except GraphError:
        return False
    return True


def test_settling_keeps_what_can_be_compiled() -> None:
    for seed in range(250):
        roots = Drawn(seed).roots
        assert not is_verified(roots) or is_verified(propagated(roots).roots), seed


@pytest.mark.cc
def test_graphs_with_layouts_as_c() -> None:
    drawn = [d for d in map(Drawn, range(1000, 1030)) if is_verified(d.roots)]
    cases = [case_with_layouts(d) for d in drawn]
    programs = [program_of(case, f"layouts{case.seed}") for case in cases]
    library = library_of(programs, "-O0")
    for case, program in zip(cases, programs, strict=True):
        running = Running(library, program)
        for n in case.batches:
            outputs, _ = expected(case.graph, case.values(n))
            got = running.call(program.entries[0], case.at(n), n)
            assert all(close(got[name], array) for name, array in outputs.items()), (case.seed, n)


def case_with_layouts(drawn: Drawn) -> Case:
    done = propagated(drawn.roots)
    feeds = stored_feeds(drawn.feeds, done)
    leaves = [n.results[0] for n in topological(done.roots) if n.op.name in ("input", "state")]
    graph = Graph("g", tuple(leaves), {f"out{i}": v for i, v in enumerate(done.roots)})
    return Case(graph, {v: feeds[v].astype("float32") for v in leaves}, seed=drawn.seed)


# Small graphs: the remaining permutes


def image(*shape: int) -> Value:
    return ag.Input("x", shape, batch_axis=0)


def nchw(v: Value) -> Value:
    return F.permute(v, (0, 3, 1, 2))


def nhwc(v: Value) -> Value:
    return F.permute(v, (0, 2, 3, 1))


def bias(v: Value) -> Value:
    return F.reshape(v, (4, 1, 1))


C = ag.Param("c", init.uniform((4,), bound=1.0, seed=1))
SELECTED, PLACES = np.array([2, 0, 2]), np.array([[2, 0, 2], [1, 1, 0]])
PROPAGATED: dict[str, Callable[[Value], Value]] = {
    "elementwise": lambda x: nhwc(F.relu(nchw(x))),
    "bias per channel": lambda x: nhwc(F.relu(nchw(x) * bias(C) + bias(C))),
    "residual": lambda x: nhwc(F.tanh(nchw(x)) + nchw(x)),
    "where": lambda x: nhwc(F.where(nchw(x) > 0.0, nchw(x), 0.1)),
    "mean of places": lambda x: F.mean(nchw(x), (2, 3)),
    "batch statistics": lambda x: nhwc(nchw(x) - F.mean(nchw(x), (0, 2, 3), keepdim=True)),
    "softmax over channels": lambda x: nhwc(F.softmax(nchw(x), 1)),
    "squeeze and excite": lambda x: nhwc(nchw(x) * F.sigmoid(F.mean(nchw(x), (2, 3), keepdim=True))),
    "group norm": lambda x: nhwc(F.group_norm(nchw(x), 2)),
    "window": lambda x: nhwc(F.relu(nchw(x)[:, 1:3, ::2, :])),
    "flip": lambda x: nhwc(F.flip(nchw(x), (1, 3))),
    "cat": lambda x: nhwc(F.cat([nchw(x), F.tanh(nchw(x))], 1)),
    "pad": lambda x: nhwc(F.pad(nchw(x), (1, 1, 0, 2))),
    "selection": lambda x: nhwc(F.index_select(nchw(x), 2, SELECTED)),
    "bilinear": lambda x: nhwc(F.interpolate(nchw(x), scale_factor=2, mode="bilinear")),
    "places": lambda x: F.permute(nchw(x)[:, :, PLACES], (0, 2, 3, 4, 1)),
    "NCW": lambda x: F.permute(F.tanh(F.permute(F.reshape(x, (-1, 15, 4)), (0, 2, 1))), (0, 2, 1)),
    "one channel": lambda x: nhwc(nchw(F.reshape(x, (-1, 12, 5, 1)))),
}


@pytest.mark.parametrize("name", PROPAGATED)
def test_permutes_cancel(name: str) -> None:
    y = PROPAGATED[name](image(2, 3, 5, 4))
    (after,) = propagated([y]).roots
    assert count([y], "permute") > 0 and count([after], "permute") == 0, str(after)


def test_an_upsampled_image_is_joined_in_the_order_of_memory() -> None:
    x = image(2, 3, 5, 4)
    wide = F.interpolate(nchw(F.tanh(x)), scale_factor=2)
    y = nhwc(F.cat([wide[:, :2], wide], 1))
    (after,) = propagated([y]).roots
    assert (y.node.op.name, after.node.op.name) == ("permute", "assemble")


def test_a_graph_whose_readers_take_strides_stays_as_it_is() -> None:
    x, w = image(2, 3), ag.Param("w", init.uniform((4, 3), bound=1.0, seed=1))
    y = F.relu(F.matmul(x, w.T).T)
    assert assign_layouts([y]) == Layouts([y], {})


def test_a_graph_stays_as_it_is_if_more_would_be_copied() -> None:
    """The weights of all pairs of nodes, for each of four heads, rather than the features of the nodes."""
    h = F.permute(F.reshape(make_input("x", Type(f32, (32, 32))), (32, 4, 8)), (1, 0, 2))
    scores = F.softmax(F.sum(h, 2, keepdim=True) + F.permute(F.sum(h, 2, keepdim=True), (0, 2, 1)), 2)
    y = F.reshape(F.permute(F.matmul(scores, h), (1, 0, 2)), (32, 32))
    assert propagated([y]).roots != [y]
    assert assign_layouts([y]) == Layouts([y], {})


def test_a_weight_that_two_layers_read_differently_keeps_its_order() -> None:
    x, w = image(2, 3, 5, 4), ag.Param("w", init.uniform((2, 60), bound=1.0, seed=1))
    folded = F.matmul(F.flatten(nchw(x), 1), w.T)
    plain = F.matmul(F.flatten(x, 1), w.T)
    assert propagated([folded]).states and count(propagated([folded]).roots, "permute") == 1  # w.T
    assert not propagated([folded, plain]).states and not propagated([plain]).states


# Models: storage order from end to end


class Folded(nn.Module):
    """tanh of a linear layer over [n, places, channels], flattened channel first, then two more."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(5, 4), nn.Linear(24, 7), nn.Linear(7, classes)

    def forward(self, x: Value) -> Value:
        h = F.tanh(self.a(x))
        h = F.flatten(F.permute(h, (0, 2, 1)), 1)
        return self.c(F.tanh(self.b(h)))


def folded(optimizer: optim.Optimizer) -> ag.Model:
    return ag.Model.supervised(Folded(3), (4, 6, 5), nn.CrossEntropyLoss(), optimizer)


def batches(steps: int) -> list[tuple[Any, Any]]:
    numbers = np.random.default_rng(1)
    sizes = [1 + k % 4 for k in range(steps)]
    return [(numbers.normal(size=(n, 6, 5)).astype("f"), numbers.integers(0, 3, n)) for n in sizes]


RULES = {"SGD": {"lr": 0.1}, "Adam": {"lr": 0.01}}


@pytest.mark.torch
@pytest.mark.cc
@pytest.mark.parametrize("rule", RULES)
def test_training_of_a_folded_flatten(rule: str, tmp_path: Path) -> None:
    import torch

    model = folded(getattr(optim, rule)(**RULES[rule]))
    stored = [s.name for s in model.states if s.storage is not None]
    assert stored == (
        ["b.weight"] if rule == "SGD" else ["b.weight", "b.weight.exp_avg", "b.weight.exp_avg_sq"]
    )
    assert not any(
        n.op.name == "permute" and n.operands[0].ndim > 2 for n in topological(model.entries()[0].roots)
    )

    layers = torch.nn.ModuleDict(
        {"a": torch.nn.Linear(5, 4), "b": torch.nn.Linear(24, 7), "c": torch.nn.Linear(7, 3)}
    )
    trainer = model.on_host()
    with torch.no_grad():
        names = list(layers.state_dict())
        layers.load_state_dict({k: torch.tensor(v) for k, v in trainer.state_dict().items() if k in names})
    theirs = getattr(torch.optim, rule)(layers.parameters(), **RULES[rule])
    for x, label in batches(8):
        h = torch.tanh(layers["a"](torch.tensor(x))).permute(0, 2, 1).flatten(1)
        scores = layers["c"](torch.tanh(layers["b"](h)))
        np.testing.assert_allclose(trainer.predict(x), scores.detach().numpy(), atol=1e-5)
        loss = torch.nn.functional.cross_entropy(scores, torch.tensor(label))
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), abs=1e-5)
    ours = trainer.state_dict()
    for name, tensor in layers.state_dict().items():
        np.testing.assert_allclose(ours[name], tensor.numpy(), atol=1e-5, err_msg=name)
    if rule == "Adam":
        moment = theirs.state[layers["b"].weight]["exp_avg"].numpy()
        np.testing.assert_allclose(ours["b.weight.exp_avg"], moment, atol=1e-6)

    again = model.on_host()
    again.load_state_dict({**ours, **layers.state_dict()})  # PyTorch's own tensors, in its layout
    x, label = batches(1)[0]
    np.testing.assert_allclose(again.predict(x), trainer.predict(x), atol=1e-5)
    trainer.save(tmp_path / "saved")
    again.load(tmp_path / "saved")
    assert all(np.array_equal(again.state_dict()[k], v) for k, v in ours.items())


@pytest.mark.cc
def test_initial_weights_are_those_of_the_logical_index() -> None:
    class Mixed(Folded):
        def __init__(self) -> None:
            super().__init__(3)
            self.b.weight = nn.Parameter(init.uniform((7, 24), low=0.5, high=2.0, seed=9))
            self.c.weight = nn.Parameter(np.arange(21.0).reshape(3, 7))

    class Given(Folded):
        def __init__(self) -> None:
            super().__init__(3)
            self.b.weight = nn.Parameter(np.arange(7.0 * 24).reshape(7, 24))

    for net in (Folded(3), Mixed(), Given()):
        model = ag.Model.supervised(net, (4, 6, 5), nn.CrossEntropyLoss(), optim.Adam())
        assert next(s.name for s in model.states if s.storage is not None) == "b.weight"
        trainer = model.on_host()
        for seed in (0, 7):
            trainer.init(seed)
            for state in model.states:
                assert np.array_equal(trainer.state_dict()[state.name], state.init.array(seed)), state.name


@pytest.mark.cc
def test_storage_order_is_part_of_the_graph_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same model stored in the logical order learns the same, but rejects the checkpoint."""
    one = folded(optim.SGD(lr=0.1)).on_host()
    monkeypatch.setattr(
        "autodiff_gen.passes.layout.layout_assignment.assign_layouts",
        lambda roots, may_store: Layouts(list(roots), {}),
    )
    other = folded(optim.SGD(lr=0.1)).on_host()
    for x, label in batches(4):
        assert one.train_step(x, label) == pytest.approx(other.train_step(x, label), abs=1e-6)
    for name, array in one.state_dict().items():
        np.testing.assert_allclose(other.state_dict()[name], array, atol=1e-6)
    assert one.program.graph_id != other.program.graph_id
    one.save(tmp_path / "saved")
    with pytest.raises(DataError, match="another model"):
        other.load(tmp_path / "saved")


@pytest.mark.torch
def test_check_names_logical_elements() -> None:
    model = folded(optim.SGD(lr=0.1))
    state = next(s for s in model.states if s.name == "b.weight")
    report, good = check(model, "folded", samples=10)
    assert good and "[7, 24]" in report
    order = state.stored(np.arange(7 * 24).reshape(7, 24)).reshape(-1)
    finding = Finding("b.weight", (7, 24), order, 1, 1, Comparison())
    place = order.tolist().index(2 * 24 + 5)
    assert finding.element(place) == "b.weight[2,5]" and place != 2 * 24 + 5


def test_groups_and_freezing_refer_to_the_parameters_of_the_module() -> None:
    net = Folded(3)
    groups = [{"params": net.b, "lr": 0.01}, {"params": [net.c.weight]}, {"params": "a"}]
    model = ag.Model.supervised(net, (4, 6, 5), nn.CrossEntropyLoss(), optim.SGD(groups, lr=0.1))
    updated = [s.name for s in model.entries()[0].updates]
    assert updated == ["b.weight", "b.bias", "c.weight", "a.weight", "a.bias"]
    frozen = Folded(3)
    frozen.b.requires_grad_(False)
    model = ag.Model.supervised(frozen, (4, 6, 5), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    assert set(model.frozen) == {"b.weight", "b.bias"}
    assert {s.name for s in model.states} == {s.name for s in model.entries()[0].updates}
    assert list(model.state_names) == [name for name, _ in frozen.named_parameters()]


def test_storage_and_back() -> None:
    storage = Storage((4, 6), (4, 3, 2), (2, 0, 1), (8, 3))
    array = np.arange(24.0).reshape(4, 6)
    stored = storage.stored(array)
    assert stored.shape == (8, 3) and np.array_equal(storage.restored(stored), array)
    assert [stored.reshape(2, 4, 3)[k, i, j] for k, i, j in np.ndindex(2, 4, 3)] == [
        array[i, 2 * j + k] for k, i, j in np.ndindex(2, 4, 3)
    ]
    assert storage.loops == [(2, 1), (4, 6), (3, 2)]
