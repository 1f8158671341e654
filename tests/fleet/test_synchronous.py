"""Synchronous training: steps of several ranks equal steps of one large batch, on one machine and in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.board_link_layout import step_sizes
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.program import Program
from autodiff_gen.errors import ModelError
from autodiff_gen.fleet.ranks import TwinRank
from autodiff_gen.fleet.reduction import reduction_of
from autodiff_gen.fleet.synchronous import RankLost, Synchronous, divided
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer

pytestmark = pytest.mark.cc
WIDTH, CLASSES, BATCH, RANKS = 6, 3, 4, 4
Data = dict[str, Any]


def data(samples: int, *shape: int) -> Data:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(samples, *(shape or (WIDTH,)))).astype(np.float32)
    return {"x": x, "label": rng.integers(0, CLASSES, samples).astype(np.uint8)}


def mlp(nn: Any) -> Any:
    return nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, CLASSES))


def convolutional(nn: Any, norm: bool = False) -> Any:
    own = [nn.BatchNorm2d(3)] if norm else []
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), *own, nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(12, CLASSES)
    )


class Integers(nn.Module):
    """A layer of floats, and one of 8-bit integers, whose updates are rounded at random."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(1)
        self.first = nn.Linear(WIDTH, 8)
        self.last = nn.QuantizedParameter(rng.integers(-127, 128, (CLASSES, 8)).astype(np.int8), 0.02)

    def forward(self, x: ag.Value) -> ag.Value:
        return F.linear(F.tanh(self.first(x)), F.dequantize(self.last))


def two_rates(net: Any) -> Any:
    first, last = list(net[0].parameters()), list(net[2].parameters())
    return optim.AdamW([{"params": first}, {"params": last, "lr": 0.002}], lr=0.02, weight_decay=0.1)


# The network, its optimizer, further options, the shape of a sample.
NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], dict[str, Any], tuple[int, ...]]] = {
    "momentum": (lambda: mlp(nn), lambda net: optim.SGD(lr=0.1, momentum=0.9), {}, (WIDTH,)),
    "groups of AdamW": (lambda: mlp(nn), two_rates, {"guard": "gradients"}, (WIDTH,)),
    "clipping": (lambda: mlp(nn), lambda net: optim.Adam(lr=0.02), {"clip_grad_norm": 0.1}, (WIDTH,)),
    "a schedule": (
        lambda: mlp(nn),
        lambda net: optim.SGD(lr=0.2),
        {"schedule": optim.lr_scheduler.StepLR(step_size=2, gamma=0.5), "ema": optim.EMA(0.9)},
        (WIDTH,),
    ),
    "a sum": (lambda: mlp(nn), lambda net: optim.RMSprop(lr=0.01), {"accumulate": "sum"}, (WIDTH,)),
    "convolutions": (lambda: convolutional(nn), lambda net: optim.SGD(lr=0.1), {}, (1, 6, 6)),
    "8-bit weights": (Integers, lambda net: optim.SGD(lr=0.5), {"split": True}, (WIDTH,)),
}


def model(name: str, batch: int) -> ag.Model:
    net, optimizer, options, shape = NETWORKS[name]
    options = {"accumulate": "mean", **options}
    built = net()
    loss = nn.CrossEntropyLoss(reduction=options["accumulate"])
    return ag.Model.supervised(built, (batch, *shape), loss, optimizer(built), **options)


def trainer(program: Program) -> Trainer:
    return Trainer(program, Compiler(find_compiler(), "-O0"))


def group(spec: ag.Model, ranks: int = RANKS, program: Program | None = None) -> Synchronous:
    program = program or compile_model(spec, "net", ["ref"])
    twins = [TwinRank(trainer(program), f"twin {k}") for k in range(ranks)]
    made = Synchronous(program, twins, spec.accumulate or "mean")
    made.load(twins[0].state(), 0)
    return made


def steps(made: Synchronous, arrays: Data, sizes: Sequence[int], lr: float | None) -> list[float]:
    """Steps of so many samples each, one after the other in the data."""
    losses, at = [], 0
    for size in sizes:
        rows = np.arange(at, at + size)
        losses.append(
            made.step(arrays, divided(rows, step_sizes(made.program, "accumulate"), len(made.ranks)), lr)
        )
        at += size
    return losses


SIZES = [
    BATCH * RANKS,
    BATCH * RANKS,
    13,
    3,
    1,
]  # of steps: the last ones leave ranks with fewer samples, or none


@pytest.mark.parametrize("name", NETWORKS)
def test_the_steps_are_those_of_one_large_batch(name: str) -> None:
    arrays = data(sum(SIZES), *NETWORKS[name][3])
    spec = model(name, BATCH)
    made = group(spec)
    again = group(spec, program=made.program)
    one = trainer(compile_model(model(name, BATCH * RANKS), "net", ["ref"]))
    one.load_state_dict(made.state())
    expected, at = [], 0
    for size in SIZES:
        expected.append(one.train_step(*(a[at : at + size] for a in arrays.values()), lr=spec.default_lr))
        at += size
    losses = steps(made, arrays, SIZES, spec.default_lr)
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-5)
    state, reference = made.state(), one.state_dict()
    for key, want in reference.items():
        np.testing.assert_allclose(state[key], want, rtol=0, atol=1e-5, err_msg=key)
    assert steps(again, arrays, SIZES, spec.default_lr) == losses
    for rank in (*made.ranks, *again.ranks):  # bit-equal between runs and ranks
        assert all(np.array_equal(a, state[key]) for key, a in rank.state().items())
    start = trainer(made.program).state_dict()
    assert sum(not np.array_equal(start[key], a) for key, a in state.items()) > 1


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_steps_are_those_of_pytorch(reduction: str) -> None:
    """Four ranks against AdamW with a clipped norm, 10 steps."""
    net = mlp(nn)
    loss = nn.CrossEntropyLoss(reduction=reduction)
    options = {"clip_grad_norm": 0.5, "accumulate": reduction}
    spec = ag.Model.supervised(net, (BATCH, WIDTH), loss, optim.AdamW(lr=0.01), **options)
    made, arrays, sizes = group(spec), data(150), [16] * 9 + [6]
    twin = mlp(torch.nn)
    state = made.state()
    twin.load_state_dict({key: torch.tensor(state[key]) for key in twin.state_dict()})
    rule, at = torch.optim.AdamW(twin.parameters(), lr=0.01), 0
    for size in sizes:
        x, y = (torch.tensor(arrays[key][at : at + size]) for key in ("x", "label"))
        rule.zero_grad()
        torch.nn.functional.cross_entropy(twin(x), y.long(), reduction=reduction).backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        rule.step()
        at += size
    steps(made, arrays, sizes, 0.01)
    state = made.state()
    for key, value in twin.state_dict().items():
        np.testing.assert_allclose(state[key], value.numpy(), rtol=0, atol=1e-5, err_msg=key)


@pytest.mark.torch
def test_running_statistics_are_averaged() -> None:
    """Each rank normalises by the statistics of its share, as DistributedDataParallel of PyTorch does; the running
    ones are the mean over the ranks, weighted by samples."""
    spec = ag.Model.supervised(
        convolutional(nn, norm=True),
        (BATCH, 1, 6, 6),
        nn.CrossEntropyLoss(),
        optim.SGD(lr=0.1),
        accumulate="mean",
    )
    made, arrays = group(spec), data(29, 1, 6, 6)
    twin = convolutional(torch.nn, norm=True)
    state = made.state()
    twin.load_state_dict({key: torch.tensor(state[key]) for key in twin.state_dict()})
    rule = torch.optim.SGD(twin.parameters(), lr=0.1)
    for rows in (range(16), range(16, 29)):
        whole = list(rows)
        shares = [[np.array(own)] for own in np.array_split(whole, RANKS)]
        start = {key: v.clone() for key, v in twin.state_dict().items()}
        ends = []
        rule.zero_grad()
        for (own,) in shares:
            twin.load_state_dict(start)
            x, y = (torch.tensor(arrays[key][own]) for key in ("x", "label"))
            loss = torch.nn.functional.cross_entropy(twin(x), y.long())
            (loss * len(own) / len(whole)).backward()
            ends.append((len(own), {key: v.clone() for key, v in twin.state_dict().items()}))
        for key in ("1.running_mean", "1.running_var"):
            start[key] = sum(n * end[key] for n, end in ends) / len(whole)
        start["1.num_batches_tracked"] += 1
        twin.load_state_dict(start)
        rule.step()
        made.step(arrays, shares, 0.1)
    state = made.state()
    for key, value in twin.state_dict().items():
        np.testing.assert_allclose(state[key], value.numpy(), rtol=0, atol=1e-5, err_msg=key)
    for rank in made.ranks:
        assert all(np.array_equal(a, state[key]) for key, a in rank.state().items())


def test_each_rank_draws_other_random_numbers() -> None:
    """The steps equal a trainer's that accumulates the shares one after the other, also where 8-bit weights are
    rounded at random in the step."""

    class Net(Integers):
        def forward(self, x: ag.Value) -> ag.Value:
            return super().forward(F.dropout(x, 0.5))

    spec = ag.Model.supervised(
        Net(), (BATCH, WIDTH), nn.CrossEntropyLoss(), optim.SGD(lr=0.5), accumulate="mean"
    )
    made, arrays = group(spec), data(48)
    one = trainer(made.program)
    drawn = []
    for first in range(0, 48, 16):
        shares = divided(np.arange(first, first + 16), step_sizes(made.program, "accumulate"), RANKS)
        for (rows,) in shares:
            one.accumulate(*(a[rows] for a in arrays.values()))
            drawn.append(int(one.state_dict()["random.step"]))
        one.apply(0.5)
        made.step(arrays, shares, 0.5)
        for key, value in one.state_dict().items():
            np.testing.assert_allclose(made.state()[key], value, rtol=0, atol=1e-5, err_msg=key)
    assert drawn == [1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14]


def test_a_rank_may_have_several_batches() -> None:
    """Two ranks with 8 samples each, four with 4, and one with 16 make the same step but for rounding."""
    spec, arrays = model("momentum", BATCH), data(32)
    states, program = [], compile_model(spec, "net", ["ref"])
    for ranks in (1, 2, 4):
        made = group(spec, ranks, program)
        steps(made, arrays, [16, 16], 0.1)
        states.append(made.state())
    for other in states[1:]:
        for key, value in states[0].items():
            np.testing.assert_allclose(other[key], value, rtol=0, atol=1e-6, err_msg=key)


SHARES = {
    (range(1, 5), 16, 4): [[4], [4], [4], [4]],
    (range(1, 5), 13, 4): [[4], [3], [3], [3]],
    (range(1, 5), 2, 4): [[1], [1], [], []],
    (range(1, 5), 23, 3): [[4, 4], [4, 4], [4, 3]],
    (range(2, 5), 5, 4): [[3], [2], [], []],
    (range(4, 5), 16, 3): [[4, 4], [4], [4]],
    (range(4, 5), 14, 2): [[4, 4], [4]],
    (range(4, 5), 4, 2): [[4], []],
}


@pytest.mark.parametrize("case", SHARES)
def test_the_shares_of_a_step(case: tuple[range, int, int]) -> None:
    sizes, samples, ranks = case
    found = divided(np.arange(100, 100 + samples), sizes, ranks)
    assert [[len(batch) for batch in own] for own in found] == SHARES[case]
    every = [i for own in found for batch in own for i in batch]
    assert every == list(range(100, 100 + len(every)))


LOSSES: dict[str, tuple[Callable[[ag.Value, ag.Value], ag.Value], str]] = {
    "mean": (lambda z, y: F.cross_entropy(z, y), "mean"),
    "weighted mean": (lambda z, y: F.cross_entropy(z, y, np.float32([0.3, 2.0, 0.7])), "mean"),
    "root of a mean": (lambda z, y: F.sqrt(F.cross_entropy(z, y) + 1e-3), "mean"),
    "sum": (lambda z, y: F.cross_entropy(z, y, reduction="sum"), "sum"),
    "square": (lambda z, y: F.square(F.cross_entropy(z, y, reduction="sum")), ""),
}


@pytest.mark.parametrize("name", LOSSES)
def test_whether_a_loss_is_a_mean_or_a_sum(name: str) -> None:
    loss, expected = LOSSES[name]
    x, y = ag.Input("x", (BATCH, WIDTH), batch_axis=0), ag.Input("label", (BATCH,), dtype="u8", batch_axis=0)
    net = nn.Sequential(nn.Linear(WIDTH, 5), nn.BatchNorm1d(5), nn.Dropout(0.1), nn.Linear(5, CLASSES))
    z = net(x)
    one = trainer(compile_model(ag.Model([x], [y], {"z": z}, loss(z, y), optim.SGD(lr=0.1)), "net", ["ref"]))
    before = one.state_dict()
    if expected:
        assert reduction_of(one, data(8), ["x", "label"]) == expected
        assert all(np.array_equal(a, before[key]) for key, a in one.state_dict().items())
    else:
        with pytest.raises(ModelError, match=r"neither a mean nor a sum over samples; give ag.Model acc"):
            reduction_of(one, data(8), ["x", "label"])


def test_a_rank_that_fails_ends_the_step() -> None:
    made, arrays = group(model("momentum", BATCH)), data(32)
    made.step(arrays, [[np.arange(4)]] * RANKS, 0.1)
    before = made.state()
    arrays["x"][6] = np.nan
    with pytest.raises(RankLost, match=r"^twin 1: net_accumulate: an input.* is not finite \(status -6\)$"):
        made.step(arrays, [[np.arange(4 * k, 4 * k + 4)] for k in range(RANKS)], 0.1)
    after = made.state()
    assert made.steps == 1 and all(np.array_equal(a, before[key]) for key, a in after.items())


def test_ranks_with_other_weights_are_found() -> None:
    made, arrays = group(model("momentum", BATCH)), data(16)
    made.ranks[2].load({**made.state(), "0.bias": made.state()["0.bias"] + np.float32(1e-6)}, 0)
    with pytest.raises(RankLost, match="twin 2 has other weights than twin 0 after step 1: does another"):
        steps(made, arrays, [16], 0.1)
