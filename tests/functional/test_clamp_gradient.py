"""Which gradients pass the limits of quantised results, by either convention, against integer arithmetic in NumPy and
gradients of real numbers in PyTorch; and the mask of a bit for each element that the closed convention stores."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import firmware_build
import numpy as np
import pytest
import torch
from generated_c import host_functions, host_trainers
from int8_networks import scaled, summed

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim, quant
from autodiff_gen.autodiff import grad
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.errors import AutodiffError, PlanError
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value
from autodiff_gen.kernels import registry
from autodiff_gen.targets import board

OF_X, OF_Y, W_SCALE = (0.05, -7), (0.2, 12), 0.1
LIMITS, WIDE, NONE = (5, 20), (-16, 32), (-128, 127)
conv2d = torch.nn.functional.conv2d


@dataclass(frozen=True)
class Row:
    """shapes: of the operands; y: of them as s8, low, high and clamp_gradient; before: of their integers, those of the
    result before it is limited; twin: of torch tensors, the real numbers of the result before it is rounded."""

    shapes: Sequence[tuple[int, ...]]
    y: Callable[..., Value]
    before: Callable[..., Any]
    twin: Callable[..., Any]
    limits: tuple[int, int] = LIMITS

    def operands(self) -> list[tuple[Value, Any]]:
        """Floats of s8 integers; many are equal, so that sums often are a limit."""
        rng = np.random.default_rng([3, *map(len, self.shapes), *self.shapes[0]])
        names = "abc"[: len(self.shapes)]
        drawn = (rng.integers(-128, 128, shape) for shape in self.shapes)
        numbers = [np.where(a > 118, 127, a // 16 * 16) for a in drawn]
        return [(ag.Input(n, a.shape), a) for n, a in zip(names, numbers, strict=True)]


def weights(*shape: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    return rng.integers(-3, 4, shape).astype(np.int8), rng.integers(-300, 300, shape[0]).astype(np.int32)


def convolution(x: tuple[int, ...], w: tuple[int, ...], **options: Any) -> Row:
    q, bias = weights(*w)
    scales = W_SCALE * np.arange(1, w[0] + 1) / 2
    ratios = (OF_X[0] * scales / OF_Y[0])[:, None, None]
    units = torch.tensor(OF_X[0] * scales)

    def before(a: Any) -> Any:
        doubles = (torch.tensor(v, dtype=torch.float64) for v in (a - OF_X[1], q, bias))
        return scaled(conv2d(*doubles, **options).numpy(), ratios, "twice") + OF_Y[1]

    def twin(a: Any) -> Any:
        real = torch.tensor(q * scales[:, None, None, None])
        return conv2d(a, real, torch.tensor(bias) * units, **options)

    def y(a: Value, **limits: Any) -> Value:
        return F.quantized_conv2d(a, F.quantized_weight(q, scales), bias, *OF_Y, **options, **limits)

    return Row([x], y, before, twin)


def linear(rows: int, inputs: int, outputs: int) -> Row:
    of = convolution((rows, inputs, 1, 1), (outputs, inputs, 1, 1))
    q, bias = weights(outputs, inputs, 1, 1)
    scales = W_SCALE * np.arange(1, outputs + 1) / 2

    def y(a: Value, **limits: Any) -> Value:
        return F.quantized_linear(a, F.quantized_weight(q[:, :, 0, 0], scales), bias, *OF_Y, **limits)

    return Row(
        [(rows, inputs)],
        y,
        lambda a: of.before(a[:, :, None, None])[:, :, 0, 0],
        lambda a: of.twin(a[:, :, None, None])[:, :, 0, 0],
    )


def two(name: str, *shapes: tuple[int, ...]) -> Row:
    function = getattr(F, f"quantized_{name}")
    sign = -1 if name == "sub" else 1

    def before(a: Any, b: Any) -> Any:
        a, b = a - OF_X[1], b - OF_X[1]
        if name == "mul":
            return scaled(a * b, np.array(OF_X[0] ** 2 / OF_Y[0]), "twice") + OF_Y[1]
        return summed([(a, OF_X[0]), (sign * b, OF_X[0])], OF_Y[0], "twice") + OF_Y[1]

    return Row(shapes, lambda a, b, **limits: function(a, b, *OF_Y, **limits), before, getattr(torch, name))


def pooling(name: str, kernel: int, shape: tuple[int, ...], limits: tuple[int, int] = WIDE) -> Row:
    pool = getattr(torch.nn.functional, f"{name}_pool2d")

    def before(a: Any) -> Any:
        v = pool(torch.tensor(a, dtype=torch.float64), kernel).numpy()
        return np.sign(v) * np.floor(np.abs(v) + 0.5)

    def y(a: Value, **more: Any) -> Value:
        return getattr(F, f"quantized_{name}_pool2d")(a, kernel, **more)

    return Row([shape], y, before, lambda a: pool(a, kernel), limits)


ROWS = {
    "a convolution": convolution((2, 3, 5, 6), (4, 3, 3, 2), padding=1),
    "one of 3 channels": convolution((1, 2, 5, 5), (3, 2, 3, 3), stride=2, padding=1),
    "groups": convolution((2, 4, 4, 4), (6, 2, 3, 3), groups=2, padding=1),
    "depthwise": convolution((1, 5, 5, 5), (5, 1, 3, 3), groups=5, padding=1),
    "linear": linear(9, 20, 11),
    "a sum": two("add", (2, 6, 8), (2, 6, 8)),
    "an odd sum": two("add", (1, 9, 7), (1, 9, 7)),
    "a broadcast difference": two("sub", (2, 9, 8), (9, 1)),
    "a broadcast product": two("mul", (2, 12, 9), (9,)),
    "means": pooling("avg", 2, (2, 5, 6, 8)),
    "maxima": pooling("max", 2, (2, 5, 6, 8)),
    "means without a limit": pooling("avg", 1, (1, 5, 6, 4), NONE),
    "maxima without a limit": pooling("max", 1, (1, 5, 6, 4), NONE),
}


@pytest.mark.cc
@pytest.mark.torch
def test_gradients_pass_limits_by_the_convention(subtests: Any) -> None:
    """Results bit for bit and gradients, in NumPy and in C. A result that was beyond a limit stops gradients by both
    conventions; one that equals it, by the open one."""
    cases, specs = [], []
    for what, row in ROWS.items():
        for convention in ("open", "closed"):
            inputs, integers = zip(*row.operands(), strict=True)
            q = [F.quantize(v, *OF_X) for v in inputs]
            low, high = row.limits
            y = row.y(*q, low=low, high=high, clamp_gradient=convention)
            dy = np.random.default_rng(2).uniform(0.5, 1.5, y.shape).astype(np.float32)
            outputs = [F.to(y, "f32"), *grad(F.sum(F.dequantize(y) * dy), list(inputs))]
            specs.append(ag.function(list(inputs), outputs))
            v = row.before(*integers)
            limited = np.clip(v, low, high)
            strict = (limited > low) & (limited < high)
            passes = strict if convention == "open" and row.limits != NONE else v == limited
            assert strict.mean() > 0.05 and (strict < (v == limited)).any(), what
            assert row.limits == NONE or (v != limited).any(), what
            reals = [
                torch.tensor(OF_X[0] * (a - OF_X[1]), dtype=torch.float64, requires_grad=True)
                for a in integers
            ]
            (row.twin(*reals) * torch.tensor(passes * dy)).sum().backward()
            feeds = {
                i: (OF_X[0] * (a - OF_X[1])).astype(np.float32) for i, a in zip(inputs, integers, strict=True)
            }
            cases.append((what, convention, feeds, outputs, limited, [r.grad.numpy() for r in reals]))
    for function, (what, convention, feeds, outputs, limited, gradients) in zip(
        host_functions(specs), cases, strict=True
    ):
        with subtests.test(what, convention=convention):
            for got in (evaluate(outputs, feeds), function(*feeds.values())):
                np.testing.assert_array_equal(got[0], limited)
                for a, want in zip(got[1:], gradients, strict=True):
                    np.testing.assert_allclose(a, want, rtol=2e-5, atol=2e-5 * np.abs(want).max())


class Net(nn.Module):
    """Convolutions, one of them depthwise, of 5 channels, a residual sum and a linear layer: all limited."""

    def __init__(self, nn: Any = nn) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 5, 3, padding=1)
        self.depthwise = nn.Conv2d(5, 5, 3, padding=1, groups=5)
        self.last = nn.Linear(5, 6)

    def forward(self, x: Value) -> Value:
        y = F.relu6(self.first(x))
        y = F.relu(F.clamp(self.depthwise(y), -1.0, 1.0) + y)
        return F.relu(self.last(F.flatten(F.avg_pool2d(y, 7), 1)))


def samples(count: int = 32) -> Any:
    return np.random.default_rng(1).normal(size=(count, 3, 7, 7)).astype(np.float32)


def model(
    convention: str, trained: str | tuple[str, ...] = "bias", batch: int = 1, **options: Any
) -> ag.Model:
    net = quant.quantize(Net(), samples(), clamp_gradient=convention)
    for name, parameter in net.named_parameters():
        parameter.requires_grad = name.endswith(trained)
    head = nn.Sequential(net, nn.Linear(6, 3))
    return ag.Model.supervised(head, (batch, 3, 7, 7), nn.CrossEntropyLoss(), optim.SGD(lr=0.1), **options)


def kept(program: Program, dtype: str) -> list[int]:
    """The bytes of each buffer of this dtype that holds something when the linear layer, the last of the quantised
    part, has been computed."""
    (plan,) = (e.plan for e in program.entries if e.plan.graph.name == "train_step")
    (last,) = (s.number for s in plan.steps if s.node.op.name == "dense_within_s8")
    buffers = (b for b in plan.placed if b.start <= last < b.end)
    return sorted(b.bytes for b in buffers if b.values[-1].type.dtype.name == dtype)


def test_a_mask_has_one_bit_for_each_element() -> None:
    """It is all that is kept of a layer whose bias trains; `predict`, which reads none, computes none."""
    program = compile_model(model("closed"), "m", ["ref"])
    elements = [245, 245, 245, 6]  # of the first convolution, the depthwise one, the sum and the linear layer
    assert kept(program, "u8") == sorted(-(-n // 8) for n in elements)
    assert kept(program, "s8") == [6]  # the head reads it
    kernels = {e.plan.graph.name: {k.name for k in e.plan.kernels} for e in program.entries}
    assert {"conv2d_within_s8", "depthwise2d_within_s8", "dense_within_s8"} <= kernels["train_step"]
    assert not [name for name in kernels["predict"] if "within" in name]
    frozen = compile_model(
        model("closed", trained="last.bias"), "m", ["ref"]
    )  # operands before it have no gradient
    assert kept(frozen, "u8") == [1]


MAIN = """#include "model.h"
#include "ag_console.h"

static const float x[] = {%s};
static model_trainer trainer;

int main(void) {
    model_init(&trainer, 0);
    for (uint8_t step = 0; step < %d; step++) {
        union {
            float value;
            uint32_t bits;
        } loss;
        const uint8_t label = (uint8_t)(step %% 3);
        (void)model_train_step(&trainer, x + step * 147, &label, MODEL_DEFAULT_LR, &loss.value);
        ag_print_hex(loss.bits);
        ag_print("\\n");
    }
    return 0;
}
"""


@pytest.mark.cc
@pytest.mark.qemu
def test_the_host_and_a_board_train_alike(tmp_path: Path) -> None:
    """Steps with all weights and biases, in an emulated Cortex-M4F: the same bits, and other losses
    than by the other convention. A batch of 3, fewer than the largest one, learns as its samples together do."""
    steps, every = 6, ("weight", "bias")
    x = samples()[:steps]
    name = "mps2_an386"
    b = board.load(name)
    program = compile_model(model("closed", every), "model", ["ref"], b)
    floats = ", ".join(f"{v!r}f" for v in map(float, x.reshape(-1)))
    for file, text in {**emit(program), "main.c": MAIN % (floats, steps)}.items():
        (tmp_path / file).write_text(text)
    tables = registry.load(["ref"], features=b.target.features)
    called = {k.source for k in program.kernels}
    kernels = [s.path for s in tables.sources() if s.path in called]
    own = [tmp_path / file for file in ("model.c", "model_params.c", "main.c")]
    elf = firmware_build.program(
        b, tables, kernels, own, tmp_path / "main.elf", cc=None, flags=(), include=(tmp_path,)
    )
    printed = firmware_build.run(name, elf, tmp_path).split()
    closed, other, accumulated, batches = host_trainers(
        [
            model("closed", every),
            model("open", every),
            model("closed", every, accumulate="mean"),
            model("closed", every, 4),
        ]
    )
    labels = np.arange(steps) % 3
    losses = [closed.train_step(x[k : k + 1], labels[k : k + 1]) for k in range(steps)]
    assert printed == [struct.pack(">f", loss).hex() for loss in losses]
    assert losses != [other.train_step(x[k : k + 1], labels[k : k + 1]) for k in range(steps)]
    sums, start = accumulated.state_dict(), batches.state_dict()
    batches.train_step(x[:3], labels[:3])
    for k in range(3):
        accumulated.accumulate(x[k : k + 1], labels[k : k + 1])
    accumulated.apply()
    for k, v in accumulated.state_dict().items():
        assert k not in start or k.endswith("weight") or (sums[k] != v).any(), k
        if k in start and start[k].dtype == np.float32:
            np.testing.assert_allclose(batches.state_dict()[k], v, rtol=1e-4, atol=1e-6, err_msg=k)


@pytest.mark.parametrize("given", ["Closed", "", None, 1, ["open"], np.array([1, 2])])
def test_other_conventions_are_rejected(given: Any) -> None:
    x = F.quantize(ag.Input("x", (1, 2, 4, 4)), *OF_X)
    w = F.quantized_weight(np.ones((2, 2, 1, 1), np.int8), 0.1)
    layers = [{"name": "in", "op": "quantize", "scale": 0.1}]
    wrong: dict[str, Callable[[], Any]] = {
        "quantize": lambda: quant.quantize(Net(), samples(), clamp_gradient=given),
        "quant.load": lambda: quant.load({"layers": layers}, clamp_gradient=given),
        "a quantised network": lambda: quant.Network([quant.Layer("in", "quantize", scale=0.1)], {}, given),
        "quantized_conv2d": lambda: F.quantized_conv2d(x, w, None, *OF_Y, clamp_gradient=given),
        "quantized_add": lambda: F.quantized_add(x, x, *OF_Y, clamp_gradient=given),
        "quantized_mul": lambda: F.quantized_mul(x, x, *OF_Y, clamp_gradient=given),
        "quantized_avg_pool2d": lambda: F.quantized_avg_pool2d(x, 2, clamp_gradient=given),
    }
    for name, call in wrong.items():
        with pytest.raises(AutodiffError) as error:
            call()
        assert str(error.value) == f"{name}: clamp_gradient={given!r} must be 'open' or 'closed'"


def test_parts_of_a_depthwise_filter_have_its_scales_within_a_budget() -> None:
    """A part of one channel may have its scales along any axis. The budget is too small, and the error says so."""
    rng = np.random.default_rng(0)
    layers = [nn.Conv2d(3, 5, 3, 2, 1), nn.ReLU6(), nn.Conv2d(5, 5, 3, padding=1, groups=5), nn.ReLU()]
    layers += [
        nn.Conv2d(5, 7, 1),
        nn.MaxPool2d(2),
        nn.ReLU6(),
        nn.Flatten(),
        nn.Linear(63, 11),
        nn.ReLU(),
        nn.Linear(11, 3),
    ]
    net = quant.quantize(
        nn.Sequential(*layers), rng.normal(size=(30, 3, 12, 12)) * 0.5, clamp_gradient="closed"
    )
    for parameter in net.parameters():
        parameter.requires_grad = True
    spec = ag.Model.supervised(net, (4, 3, 12, 12), nn.CrossEntropyLoss(), optim.SGD(lr=0.05))
    whole = compile_model(spec, "m", ("ref",)).struct_bytes
    with pytest.raises(PlanError, match="bytes are missing"):
        compile_model(spec, "m", ("ref",), ram=int(0.55 * whole))
