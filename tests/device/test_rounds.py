"""Rounds of federated training on a board: the steps, the order of samples, the difference, the shared part."""

from __future__ import annotations

import numpy as np
import pytest
from round_board import Twin, checksum, connected
from round_task import CLASSES, RECORDS, WORK, batches, build, network, weights_of

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.shared_part import shared_part
from autodiff_gen.device.rounds import LocalWork, Round

pytestmark = pytest.mark.cc


def test_a_round_is_the_same_steps_bit_for_bit(library, samples, weights):
    board = connected(library, Twin(library, samples))
    round_ = Round(board, 3, weights)
    assert (round_.samples, round_.local.steps, board.greeting.round) == (RECORDS, 0, 3)
    done = round_.train(WORK)
    assert (done.steps, done.examples) == (11, 55)
    other = connected(library, Twin(library, samples))
    other.load_state_dict({**other.state_dict(), **weights})
    losses = [other.train_step(*batch, lr=WORK.lr) for batch in batches(library, samples, WORK)]
    after = board.state_dict()
    assert checksum(after) == checksum(other.state_dict())
    assert done.loss == pytest.approx(np.mean(losses), rel=1e-6)
    assert board.counters().steps == 11
    delta = round_.delta()
    assert delta.keys() == weights.keys()
    for name, start in weights.items():
        np.testing.assert_array_equal(delta[name], after[name] - start)
    assert checksum(board.state_dict()) == checksum(after)


def test_bytes_of_a_delta_are_right_on_average(library, samples, weights):
    board = connected(library, Twin(library, samples))
    round_ = Round(board, 1, weights)
    round_.train(WORK)
    exact = np.concatenate([a.ravel() for a in round_.delta().values()])
    before = board.link.traffic.received
    drawn = []
    for seed in range(200):
        drawn.append(np.concatenate([a.ravel() for a in round_.delta("s8", seed).values()]))
    received = (board.link.traffic.received - before) / 200
    per = board.link.payload - 4
    scale = np.concatenate(
        [
            np.full(len(part), np.abs(part).max() / 127)
            for part in np.split(exact, range(per, len(exact), per))
        ]
    )
    drawn = np.array(drawn)
    assert (np.abs(drawn - exact) <= scale * 1.0001).all()
    error = drawn.mean(0) - exact
    assert (np.abs(error) < 5 * scale * 0.5 / np.sqrt(200)).all() and abs((error / scale).mean()) < 0.01
    assert (drawn.std(0) > 0).mean() > 0.9
    again = np.concatenate([a.ravel() for a in round_.delta("s8", 5).values()])
    np.testing.assert_array_equal(again, drawn[5])
    payload = len(exact) + 4 * -(-len(exact) // per)
    assert payload < 0.26 * 4 * len(exact) and received < payload + 20 * -(-len(exact) // per)


@pytest.mark.parametrize("mu", [0.5, 4.0])
def test_the_proximal_term(small, samples, rng, mu):
    """Against NumPy: gradient descent with momentum, and w -= lr mu (w - w0) after each step."""
    start = weights_of(small.program, rng)
    round_ = Round(connected(small, Twin(small, samples)), 1, start)
    work = LocalWork(steps=9, lr=0.1, seed=3, mu=mu)
    round_.train(work)
    w, b = (start[k].astype(np.float64) for k in ("weight", "bias"))
    v, u = np.zeros_like(w), np.zeros_like(b)
    for x, y in batches(small, samples, work):
        scores = x @ w.T + b
        p = np.exp(scores - scores.max(1, keepdims=True))
        d = (p / p.sum(1, keepdims=True) - np.eye(CLASSES)[y]) / len(x)
        v, u = 0.9 * v + d.T @ x, 0.9 * u + d.sum(0)
        w, b = w - work.lr * v, b - work.lr * u
        w -= work.lr * mu * (w - start["weight"])
        b -= work.lr * mu * (b - start["bias"])
    delta = round_.delta()
    np.testing.assert_allclose(delta["weight"], w - start["weight"], atol=2e-6)
    np.testing.assert_allclose(delta["bias"], b - start["bias"], atol=2e-6)


def test_buffers_may_stay_on_the_board(library, samples, weights):
    board = connected(library, Twin(library, samples))
    own = board.state_dict()
    round_ = Round(board, 1, weights, local_buffers=True)
    state = board.state_dict()
    for name, array in weights.items():
        np.testing.assert_array_equal(state[name], own[name] if "running" in name else array)
    round_.train(WORK)
    delta = round_.delta()
    assert delta.keys() == {n for n in weights if "running" not in n}
    assert all(np.abs(a).max() > 0 for a in delta.values())


def test_the_order_has_each_sample_once(library):
    for n in (*range(1, 70), 255, 256, 257, 1000, 4096):
        for seed, epoch in ((0, 0), (0, 1), (1, 0), (0xFFFFFFFF, 65535)):
            order = [library.c.ag_round_sample(i, n, seed, epoch) for i in range(n)]
            assert sorted(order) == list(range(n)), n
    order = np.array([library.c.ag_round_sample(i, 256, 1, 0) for i in range(256)])
    assert len({*np.diff(order) % 256}) > 100  # in no fixed steps
    first = np.array(
        [[library.c.ag_round_sample(i, 100, seed, 0) for i in range(100)] for seed in range(400)]
    )
    places = np.stack([(first == k).mean(0) for k in range(100)])  # of sample k at position i
    assert places.max() < 0.05 and abs(np.corrcoef(first.T)[np.triu_indices(100, 1)]).mean() < 0.06


def test_what_is_shared(rng):
    """Parameters that train and floats of buffers, not the optimizer's state and no counters."""
    program = compile_model(build(network()), "net", ("ref",))
    assert [(r.kind, r.is_buffer, [s.name for s in r.slots]) for r in shared_part(program)] == [
        ("f32", False, ["0.weight", "0.bias", "1.weight", "1.bias"]),
        ("f32", True, ["1.running_mean", "1.running_var"]),
        ("f32", False, ["3.weight", "3.bias"]),
    ]
