"""`check`: right gradients pass, wrong ones are found and named, kinks are told from faults."""

import dataclasses

import numpy as np
import pytest
from checkout import ROOT

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.check.gradcheck import check
from autodiff_gen.check.gradient_problem import problems
from autodiff_gen.errors import ModelError
from autodiff_gen.ir.build import apply
from autodiff_gen.ir.node import OPS
from autodiff_gen.model.loader import load_file


def net(activation, batch=3):
    layers = nn.Sequential(nn.Linear(5, 4), activation, nn.Linear(4, 3))
    return ag.Model.supervised(
        layers, input=(batch, 5), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1)
    )


def with_parameter(loss_of_w, start=(0.5, -0.25)):
    """A model whose loss is a function of one parameter w[2] and the input x[2]."""
    x, w = ag.Input("x", (2,)), ag.Param("w", np.array(start))
    loss = loss_of_w(w, x)
    return ag.Model([x], [], {"y": x * w}, loss, optim.SGD(lr=0.1))


@pytest.mark.torch
@pytest.mark.parametrize("activation", [nn.Sigmoid(), nn.Tanh(), nn.ReLU()], ids=["sigmoid", "tanh", "relu"])
def test_right_gradients_pass(activation):
    report, good = check(net(activation), "net")
    assert good, report
    assert "0.weight" in report and "2.bias" in report
    assert "20 of 20" in report
    assert "PyTorch in float64" in report
    assert "all gradients agree" in report


def test_large_parameters_are_sampled_and_the_report_says_so():
    report, good = check(net(nn.Tanh()), "net", samples=7)
    assert good, report
    assert "7 of 20" in report and "7 of 12" in report and "4 of 4" in report


@pytest.fixture
def wrong_vjp(monkeypatch):
    """Scale one op's VJP; models built afterwards have wrong gradients."""

    def scale(name, factor):
        record = OPS[name]

        def vjp(*args):
            return [None if g is None else apply("mul", g, factor) for g in record.vjp(*args)]

        monkeypatch.setitem(OPS, name, dataclasses.replace(record, vjp=vjp))

    return scale


@pytest.mark.torch
@pytest.mark.parametrize("factor", [1.01, 1.0001, -1.0, float("nan")])
def test_a_wrong_vjp_is_found_by_both_oracles(wrong_vjp, factor):
    wrong_vjp("tanh", factor)
    report, good = check(net(nn.Tanh()), "net")
    assert not good
    lines = [line for line in report.splitlines() if "WRONG" in line]
    for parameter in ("0.weight", "0.bias"):
        for oracle in ("finite differences", "PyTorch"):
            assert any(parameter in line and oracle in line and f"{parameter}[" in line for line in lines), (
                report
            )
    assert not any(line.startswith("2.") for line in lines), report
    assert "FAILED: 0.weight, 0.bias" in report


def test_a_wrong_vjp_is_found_without_pytorch(wrong_vjp, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    wrong_vjp("tanh", 1.001)
    report, good = check(net(nn.Tanh()), "net")
    assert not good
    assert "PyTorch, which is not installed" in report


@pytest.mark.torch
def test_a_kink_is_named_and_is_no_fault():
    """relu(w - c) with c a rounding away from the point of the check."""
    plain = with_parameter(lambda w, x: F.sum(w))
    (problem,) = problems(plain, "net", 0, None, None)
    (point,) = (array for v, array in problem.feeds.items() if v.name == "w")
    c = np.array([point[0], -5.0], dtype="float32")
    report, good = check(with_parameter(lambda w, x: F.sum(F.relu(w - c))), "net")
    assert good, report
    assert "w: 1 at a kink, the gradient between the one-sided differences: w[0]" in report


def test_the_data_moves_into_the_domain_of_the_loss():
    report, good = check(with_parameter(lambda w, x: F.sum(F.log(x) * w)), "net")
    assert good, report
    assert "[0.1, 0.9)" in report


def test_a_loss_that_is_never_finite_is_an_error():
    model = with_parameter(lambda w, x: F.sum(F.log(x - 5.0) * w))
    with pytest.raises(ModelError, match="define `samples` with arrays for which it is finite"):
        check(model, "net")


MODELS = sorted([*ROOT.glob("examples/*/model.py"), *ROOT.glob("bench/workloads/w[0-9]*.py")])


@pytest.mark.torch
def test_loops_and_conditions_are_compared_with_pytorch_too():
    x, p = ag.Input("x", (2, 6, 3)), ag.Input("p", ())
    gru = nn.GRU(3, 4, batch_first=True, bidirectional=True)
    y, _ = gru(x)
    chosen = F.cond(p > 0.0, lambda v: F.tanh(v) * 2.0, lambda v: F.exp(-v), y)
    model = ag.Model([x, p], [], {"y": y}, F.sum(chosen), optim.SGD())
    for number in (-1.0, 1.0):
        report, good = check(model, "loops", data={"p": np.float32(number)})
        assert good and report.count(" PyTorch ") == 8 + 1, report


@pytest.mark.torch
@pytest.mark.parametrize("path", MODELS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_example_and_workload(path):
    file = load_file(str(path))
    report, good = check(file.made, file.name, samples=8, data=file.samples)
    assert good, report
    assert "PyTorch in float64" in report


@pytest.mark.torch
@pytest.mark.parametrize("factor", [1.0, 1e4])
def test_a_gradient_that_is_zero_but_for_rounding_passes_and_is_called_so(factor):
    """The bias before BatchNorm; the larger the loss, the larger its rounding."""
    x, t = ag.Input("x", (4, 2, 12)), ag.Input("label", (4,), dtype="u8")
    layers = nn.Sequential(nn.Conv1d(2, 3, 5), nn.BatchNorm1d(3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 2))
    z = layers(x)
    model = ag.Model([x], [t], {"scores": z}, factor * F.cross_entropy(z, t), optim.SGD(lr=0.1))
    report, good = check(model, "net", samples=3)
    assert good, report
    zero = [line.split()[0] for line in report.splitlines() if "ok: 0 but for rounding" in line]
    assert zero == ["0.bias", "0.bias"], report
