"""A batch in parts: a graph that is divided computes the same, and training in micro-batches under a budget of RAM is
as without one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from graph_stages import rewritten
from int8_networks import random_network

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim, quant
from autodiff_gen.bench.probes import probes
from autodiff_gen.codegen.budget_notes import budget_notes
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.errors import AutodiffError, PlanError
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.ir.batch_axis import Mixed
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import INPUT, STATE
from autodiff_gen.ir.types import Dim, bound
from autodiff_gen.ir.verifier import verify
from autodiff_gen.lowering import plan_search
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.memory.micro_batches import divided, is_divided, micro_batches, parts_of_batch
from autodiff_gen.passes.work_estimate import Work
from autodiff_gen.report.collect import collect
from autodiff_gen.report.explain import explain
from autodiff_gen.targets.board import load

CLASSES = 5


def classifier(net: nn.Module, input: tuple[int, ...], loss: Any = None, **options: Any) -> ag.Model:
    options.setdefault("optimizer", optim.SGD(lr=0.1))
    return ag.Model.supervised(net, input=input, loss=loss or nn.CrossEntropyLoss(), **options)


def mlp(between: Callable[[], nn.Module] = nn.Tanh, **options: Any) -> ag.Model:
    """Weights that take more memory than the results of all samples of a layer, and others."""
    layers = [nn.Linear(12, 40), between(), nn.Linear(40, 40), between(), nn.Linear(40, CLASSES)]
    return classifier(nn.Sequential(*layers), (64, 12), **options)


def cnn(**options: Any) -> ag.Model:
    first = [nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 6, 3, groups=6)]
    last = [
        nn.Conv2d(6, 8, 1),
        nn.SiLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32, 200),
        nn.Linear(200, CLASSES),
    ]
    return classifier(nn.Sequential(*first, *last), (20, 1, 12, 12), **options)


def words(**options: Any) -> ag.Model:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Embedding(30, 16), nn.Linear(16 * 9, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.head(F.flatten(self.embed(x), 1))

    x, label = ag.Input("x", (48, 9), "u8", batch_axis=0), ag.Input("label", (48,), "u8", batch_axis=0)
    scores = Words()(x)
    outputs = {"scores": scores, "best": F.argmax(scores, 1)}
    return ag.Model([x], [label], outputs, F.cross_entropy(scores, label), optim.Adam(lr=0.01), **options)


def recurrent(layer: nn.Module, width: int) -> ag.Model:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.head = layer, nn.Linear(width, CLASSES)

        def forward(self, x: Any) -> Any:
            return self.head(F.mean(self.cells(x)[0], 1))

    return classifier(Recurrent(), (24, 11, 3))


def tokens() -> ag.Model:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
    net = nn.Sequential(nn.Linear(3, 16), layer, nn.Flatten(), nn.Linear(16 * 7, CLASSES))
    return classifier(net, (24, 7, 3))


def images_with_norm(norm: Callable[[int], nn.Module], training: bool = True) -> ag.Model:
    net = nn.Sequential(nn.Conv2d(1, 6, 3), norm(6), nn.ReLU(), nn.Flatten(), nn.Linear(600, CLASSES))
    return classifier(net if training else net.eval(), (20, 1, 12, 12))


def eight_bits() -> ag.Model:
    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = quant.load(random_network(np.random.default_rng(5), 16))
            self.head = nn.Linear(10, CLASSES)
            layers = dict(self.backbone.named_modules())
            layers["blocks.2.pointwise1"].weight.requires_grad = True
            layers["blocks.1.depthwise"].bias.requires_grad = True

        def forward(self, x: Any) -> Any:
            return self.head(F.flatten(self.backbone(x), 1))

    return classifier(Head(), (6, 3, 16, 16), optimizer=optim.SGD(lr=1e-3))


MODELS: dict[str, Callable[[], ag.Model]] = {
    "mlp": mlp,
    "cnn": lambda: cnn(optimizer=optim.SGD(lr=0.05, momentum=0.9)),
    "dropout": lambda: mlp(lambda: nn.Dropout(0.3)),
    "words": words,
    "eight bits": eight_bits,
    "gru": lambda: recurrent(nn.GRU(3, 16, batch_first=True), 16),
    "lstm": lambda: recurrent(nn.LSTM(3, 8, 2, batch_first=True, bidirectional=True, dropout=0.2), 16),
    "tokens": tokens,
    "group norm": lambda: images_with_norm(lambda k: nn.GroupNorm(2, k)),
    "batch norm, evaluation": lambda: images_with_norm(nn.BatchNorm2d, training=False),
    "ignored labels": lambda: mlp(loss=nn.CrossEntropyLoss(ignore_index=3)),
    "sum": lambda: mlp(loss=nn.CrossEntropyLoss(reduction="sum"), optimizer=optim.SGD(lr=0.002)),
}

OPTIONS: dict[str, Callable[[], ag.Model]] = {
    "adam, norm of gradients": lambda: mlp(clip_grad_norm=0.1, optimizer=optim.Adam(lr=0.01)),
    "limits, finite gradients": lambda: mlp(clip_grad_value=0.01, guard="gradients"),
    "momentum, finite gradients": lambda: cnn(optimizer=optim.SGD(lr=0.05, momentum=0.9), guard="gradients"),
    "accumulate mean": lambda: mlp(accumulate="mean", guard=None),
    "accumulate sum": lambda: cnn(accumulate="sum", optimizer=optim.RMSprop(lr=0.001)),
    "averages, in parts": lambda: mlp(ema=optim.EMA(0.9), split=True),
}


def arrays(values: Any, n: int, seed: int) -> dict[Any, Any]:
    """Random arrays for inputs and states."""
    rng, out = np.random.default_rng(seed), {}
    for v in values:
        shape, dtype = bound(v.type.shape, n), v.type.dtype
        out[v] = (
            rng.uniform(0.1, 1, shape)
            if dtype.kind == "f"
            else rng.integers(0, CLASSES, shape).astype(dtype.numpy)
        )
    return out


def largest_batch(graph: Graph) -> int:
    return next(d.cap for v in graph.inputs for d in v.type.shape if isinstance(d, Dim))


@pytest.mark.parametrize("name", MODELS)
def test_a_divided_graph_computes_the_same_for_every_batch(name: str) -> None:
    rng = np.random.default_rng(7)
    for entry in MODELS[name]().entries():
        graph = rewritten(entry, "part_propagation")
        largest = largest_batch(graph)
        for most in (1, *rng.integers(2, largest, 2)):
            parts = divided(graph, int(most))
            verify(parts)
            assert is_divided(parts) and not is_divided(graph)
            sizes = {1, most - 1, most, most + 1, 2 * most, largest, *rng.integers(1, largest, 2)}
            for n in (int(n) for n in sizes if 1 <= n <= largest):
                feeds = arrays([*graph.leaves(INPUT), *graph.leaves(STATE)], n, seed=n)
                before, after = (evaluate(g.roots, feeds, n, float_dtype="float64") for g in (graph, parts))
                for a, b in zip(before, after, strict=True):
                    np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12, err_msg=f"{most} of {n}")


def under_a_budget(make: Callable[[], ag.Model], share: float) -> tuple[Any, Any, int]:
    """Trainers without and with a budget of this share of the arena, and the samples of a micro-batch."""
    whole = make().on_host()
    state = whole.program.state_bytes
    budget = state + int((whole.nbytes - state) * share)
    program = compile_model(make(), "model", ["ref"], ram=budget)
    narrow = Trainer(program, Compiler(find_compiler()), poison=True)
    assert narrow.nbytes <= budget
    return whole, narrow, narrow.program.entries[0].plan.samples


def batch(trainer: Any, n: int, seed: int) -> list[Any]:
    """Inputs and targets."""
    values = [a.value for a in trainer.program.entries[0].args if a.role == "input" and a.name != "lr"]
    return [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays(values, n, seed).values()]


@pytest.mark.cc
@pytest.mark.parametrize("name", [*MODELS, *OPTIONS])
def test_training_in_micro_batches(name: str) -> None:
    whole, narrow, most = under_a_budget({**MODELS, **OPTIONS}[name], 0.5)
    assert most > 0
    largest = whole.program.batch
    for seed, n in enumerate(sorted({1, max(most - 1, 1), most, most + 1, largest})):
        given = batch(whole, n, seed)
        losses = [t.train_step(*given) for t in (whole, narrow)]
        assert losses[1] == pytest.approx(losses[0], rel=1e-6)
        assert n > 1 or losses[0] == losses[1], "sums have the order of the whole batch"
        if "accumulate" in name:
            for _ in range(2):
                assert narrow.accumulate(*given) == pytest.approx(whole.accumulate(*given), rel=1e-6)
            whole.apply(lr=0.01)
            narrow.apply(lr=0.01)
        for method in ("predict", *(["predict_averaged"] if "averages" in name else [])):
            before, after = (getattr(t, method)(given[0]) for t in (whole, narrow))
            results = (
                zip(before.values(), after.values(), strict=True)
                if isinstance(before, dict)
                else [(before, after)]
            )
            for a, b in results:
                np.testing.assert_allclose(b, a, rtol=1e-5, atol=2e-6)
    for key, value in whole.state_dict().items():
        np.testing.assert_allclose(narrow.state_dict()[key], value, rtol=1e-5, atol=1e-6, err_msg=key)


@pytest.mark.cc
def test_a_step_whose_last_sample_is_not_finite_is_rejected() -> None:
    _, narrow, most = under_a_budget(cnn, 0.5)
    image, label = batch(narrow, 20, 1)
    before = narrow.state_dict()
    image[19] = 3e38
    with pytest.raises(AutodiffError, match="the loss is not finite"):
        narrow.train_step(image, label)
    assert 0 < most < 20 and all(np.array_equal(v, before[k]) for k, v in narrow.state_dict().items())


def test_gradients_of_large_weights_are_not_stored() -> None:
    """They take more memory than their operands for the whole batch."""
    graph = rewritten(cnn().entries()[0], "part_propagation")
    (loop,) = (n for n in divided(graph, 4).nodes if "samples" in n.attrs)
    shapes = [r.type.shape for r in loop.results]
    carries = shapes[: loop.attrs["carries"]]
    assert (6, 3, 3, 1) in carries and (200, 32) not in carries
    assert (200,) not in carries, (
        "nor the gradient of a bias, which is computed from the same gradient of a result"
    )
    assert {s[1:] for s in shapes[loop.attrs["carries"] :]} >= {(200,), (32,)}


def test_channels_that_do_not_train_have_no_gradients_in_the_loop() -> None:
    def partial() -> ag.Model:
        first, last = (
            nn.Conv2d(8, 16, 3),
            nn.Sequential(nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(256, CLASSES)),
        )
        nn.update_channels(first, 0.25)
        return classifier(nn.Sequential(first, last), (12, 8, 10, 10))

    program = compile_model(partial(), "m", ["ref"], ram=60_000)
    notes = budget_notes(program, lambda: compile_model(partial(), "m", ["ref"]))
    assert program.struct_bytes <= 60_000 and program.entries[0].plan.samples
    assert [re.search(r"([+-]\d+) multiply", note)[1] for note in notes] == ["+0"] * len(notes)  # type: ignore[index]


def contrastive() -> ag.Model:
    x = ag.Input("x", (16, 64), batch_axis=0)
    z = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 32))(x)
    return ag.Model([x], [], {"z": z}, F.mean((z @ z.T) ** 2), optim.SGD(lr=0.01))


MIXED: dict[str, tuple[Callable[[], ag.Model], str]] = {
    "batch norm": (lambda: images_with_norm(nn.BatchNorm2d), "layer '1' makes a sample depend on others"),
    "pairs": (contrastive, "layer '2' has an element for each pair of samples"),
    "time first": (
        lambda: mlp(lambda: Apply(lambda x: F.relu(x - F.amax(x, 0, keepdim=True)))),
        "layer '1' makes a sample depend on others",
    ),
}


class Apply(nn.Module):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


@pytest.mark.parametrize("name", MIXED)
def test_samples_that_are_mixed_are_not_divided(name: str) -> None:
    make, reason = MIXED[name]
    graph = rewritten(make().entries()[0], "part_propagation")
    with pytest.raises(Mixed, match=re.escape(reason)):
        divided(graph, 4)
    assert micro_batches(graph, Context(samples=4)) is graph
    with pytest.raises(PlanError, match=f"; the batch is not divided: {reason}; `autodiff-gen plan`"):
        compile_model(make(), "m", ["ref"], ram=compile_model(make(), "m", ["ref"]).state_bytes + 400)


def test_parts_of_a_batch() -> None:
    def parts(largest: int) -> list[int]:
        return parts_of_batch(mlp_of(largest).entries()[0], tile=4)

    def mlp_of(largest: int) -> ag.Model:
        return classifier(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, CLASSES)), (largest, 3))

    found = {n: parts(n) for n in (1, 2, 5, 8, 20, 32)}
    assert found == {1: [], 2: [1], 5: [3, 2, 1], 8: [4, 2, 1], 20: [8, 4, 3, 2, 1], 32: [16, 8, 4, 2, 1]}


def test_micro_batches_of_one_sample_have_strips_where_that_is_not_enough() -> None:
    layers = [nn.Conv2d(3, 48, 1), nn.Hardswish(), nn.Conv2d(48, 48, 5, stride=2, padding=2, groups=48)]
    frozen = nn.Sequential(*layers, nn.Hardswish(), nn.Conv2d(48, 8, 1))
    frozen.requires_grad_(False)
    trained = [
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    ]
    model = classifier(nn.Sequential(frozen, *trained), (8, 3, 20, 20))
    program = compile_model(model, "m", ["ref"], ram=60_000)
    assert program.struct_bytes <= 60_000
    assert [e.plan.samples for e in program.entries] == [1, 1]
    assert explain_text(model, 60_000).count("computes its batch 1 sample at a time, for the RAM budget") == 2


def explain_text(model: ag.Model, ram: int | None) -> str:
    return explain(compile_model(model, "m", ["ref"], ram=ram), load("host"), ram)


def test_a_batch_that_fits_is_not_divided() -> None:
    whole = compile_model(cnn(), "m", ["ref"])
    given = compile_model(cnn(), "m", ["ref"], ram=whole.struct_bytes)
    assert [e.plan.samples for e in given.entries] == [0, 0] and given.struct_bytes == whole.struct_bytes
    assert "at a time" not in explain_text(cnn(), None)


def test_the_cost_of_a_budget_names_micro_batches() -> None:
    model = cnn()
    program = compile_model(model, "m", ["ref"], ram=100_000)
    most = [e.plan.samples for e in program.entries if e.plan.samples]
    notes = budget_notes(program, lambda: compile_model(cnn(), "m", ["ref"]))
    source = emit(program)["m.c"]
    assert most and min(most) > 1
    for k, note in zip(most, notes, strict=True):
        assert f", which computes {k} samples at a time, by +" in note
        assert f" n samples, {k} at a time: " in source
        assert f"    for (int32_t start = 0; start < n; start += {k}) {{\n" in source
        assert f"        const int32_t count = n - start < {k} ? n - start : {k};\n" in source
        share = re.search(r"instructions \(([+-][\d.]+)%\)", note)
        assert share is not None and -1 < float(share[1]) < 10


def test_steps_of_the_loop_belong_to_phases_and_layers() -> None:
    """In what bench counts, and in the report."""
    program = compile_model(cnn(), "m", ["ref"], ram=100_000)
    said = [(p.step, p.phase, p.layer) for p in probes(program) if p.entry == "train_step" and "." in p.step]
    assert {phase for _, phase, _ in said} == {"forward", "backward"}
    assert {layer for _, _, layer in said} >= {"0", "4"}
    (record,) = (e for e in collect(program, load("host"), None).entries if e.name == "train_step")
    inside = {s.number: (s.phase.replace("loss", "forward"), s.layer) for s in record.steps}
    assert said == [(number, *inside[number]) for number, _, _ in said]


@pytest.mark.parametrize(("peak", "instructions", "samples"), [(90, 5.0, 8), (90, 20.0, 0), (110, 5.0, 0)])
def test_the_means_that_takes_least_time_is_chosen(
    peak: int, instructions: float, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both fit; or else the smaller one."""

    def planned(peak: int, instructions: float, samples: int) -> Any:
        plans = {"float": SimpleNamespace(peak=peak)}
        return SimpleNamespace(plans=plans, work=Work(0, instructions), samples=samples)

    found = planned(peak, instructions, 8)
    monkeypatch.setattr(plan_search, "planned", lambda *_: [found])
    graph = mlp().entries()[0]
    plan = plan_search._within_budget(planned(95, 10.0, 0), graph, Context(budget=100), None)
    assert plan.samples == samples


@pytest.mark.cc
def test_names_of_the_loop_are_not_those_of_inputs() -> None:
    """Nor bytes of memory regions."""

    def named() -> ag.Model:
        count, start = ag.Input("count", (32, 12), batch_axis=0), ag.Input("start", (32, 3), batch_axis=0)
        y = nn.Sequential(nn.Linear(12, 80), nn.Tanh(), nn.Linear(80, 3))(count)
        return ag.Model([count], [start], {"y": y}, F.mean((y - start) ** 2), optim.SGD(lr=0.1))

    whole, narrow, most = under_a_budget(named, 0.75)
    two = named().on_host(ram={"near": narrow.nbytes - 2000, "far": 2100})
    assert most > 1 and two.program.entries[0].plan.samples
    given = batch(whole, 32, 3)
    loss = whole.train_step(*given)
    for trainer in (narrow, two):
        assert trainer.train_step(*given) == pytest.approx(loss, rel=1e-6)


def test_the_stage_needs_a_number_of_samples() -> None:
    graph = rewritten(mlp().entries()[0], "part_propagation")
    assert micro_batches(graph, Context()) is graph
    assert micro_batches(replace(graph, inner=True), Context(samples=4)).inner
    assert is_divided(micro_batches(graph, Context(samples=4)))
