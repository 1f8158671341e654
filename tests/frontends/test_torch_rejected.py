"""Programs of PyTorch that cannot be imported, or whose changes torch.export does not record: one line says why."""

import copy
import random

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_changes import installed
from torch_program import BATCH, Program, two

import autodiff_gen as ag

pytestmark = [pytest.mark.torch, pytest.mark.cc]

HERE = r"test_torch_rejected.py:\d+"

NOT_RECORDED = (
    "it does not record a tensor that forward makes; compute with functions of torch of the inputs, .*"
)
MADE = "it does not record a tensor that forward makes; compute with functions of torch of the inputs, .*"
REJECTED = {
    "a complex result": (
        lambda m, x: torch.fft.fft(m["net"](x)),
        r"Program returns complex numbers; return torch.view_as_real of them",
    ),
    "an operator of complex numbers": (
        lambda m, x: torch.fft.fft(m["net"](x)).tanh().real.sum(),
        r"aten.tanh.default has complex numbers; compute with torch.view_as_real, or with the real and imaginary parts",
    ),
    "real and complex parts": (
        lambda m, x: (
            torch.cat([torch.fft.fft(m["net"](x)), torch.fft.rfft(x)[:, :1] + x[:, :1]], 1).abs().sum()
        ),
        r"mixes real and complex tensors; make the real ones complex by torch.complex",
    ),
    "torch.func": (
        lambda m, x: torch.func.grad(lambda z: m["net"](z).sum())(x).mean(),
        r"it cannot trace torch.func; use torch.autograd.grad\(y, x, create_graph=True\)",
    ),
    "batches of gradients": (
        lambda m, x: torch.autograd.grad(m["net"](x.clone()), x, torch.eye(3), is_grads_batched=True)[
            0
        ].sum(),
        "has is_grads_batched=True; call it for each gradient",
    ),
    "the gradient of a constant": (
        lambda m, x: torch.autograd.grad(
            (m["net"](x) * (factor := torch.ones(3, requires_grad=True))).sum(), factor
        )[0].sum(),
        r"has a gradient with respect to a constant; compute it from an input, as by torch.zeros_like\(x\)",
    ),
    "a copy of a module": (
        lambda m, x: copy.deepcopy(m["net"])(x).sum(),
        r"forward calls copy.deepcopy of a module; make the copy in __init__, or .* \(test_torch_rejected.py:\d+\)$",
    ),
    "copies of parameters": (
        lambda m, x: sum(p.sum() for p in copy.deepcopy(list(m["net"].parameters()))) + m["net"](x).sum(),
        r"forward calls copy.deepcopy of a (tensor|parameter); make the copy .* \(test_torch_rejected.py:\d+\)$",
    ),
    "a tensor of NumPy": (
        lambda m, x: m["net"](x + torch.from_numpy(x.detach().numpy() * 2)).sum(),
        rf"{MADE} \(test_torch_rejected.py:\d+\)$",
    ),
    "a tensor of values": (
        lambda m, x: (m["net"](x) * torch.Tensor([x.sum()])).sum(),
        rf"{MADE} \(test_torch_rejected.py:\d+\)$",
    ),
    "a custom error": (
        lambda m, x: m["net"](x) / 0 @ x,
        r"must have same .* \(test_torch_rejected.py:\d+\)$",
    ),
    "other memory": (
        lambda m, x: x.clone().set_(m["net"](x)).sum(),
        r"forward calls set_ \(test_torch_rejected.py:\d+\), which gives a tensor other memory; compute with a new",
    ),
    "targets in one axis": (
        lambda m, x: F.ctc_loss(m["net"](x)[:, None], torch.ones(3, dtype=torch.long), (BATCH,), (3,)),
        r"targets of all sequences in one axis; pad them to one length, as \[N, S\]",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_torch_export_cannot_trace_is_one_line(name):
    loss, message = REJECTED[name]
    with pytest.raises(ag.AutodiffError, match=message) as e:
        ag.from_torch(Program(loss, net=two()), (BATCH, 6))
    assert "\n" not in str(e.value)


def counted(m, x):
    m.calls = getattr(m, "calls", 0) + 1
    return m["net"](x).sum() * (0.5 if m.calls % 10 == 0 else 1.0)


def smoothed(m, x):
    m.mean = 0.9 * getattr(m, "mean", 0.0) + 0.1 * x.detach().mean()
    return ((m["net"](x) - m.mean) ** 2).sum()


def late(m, x):
    h = m["net"](x)
    y = h.sum()
    h.register_hook(torch.sign)
    return y


def frozen(m, x):
    m["net"][0].weight.requires_grad = False
    return m["net"](x).sum()


def part_changed(m, x):
    h = m["net"](x)
    with torch.no_grad():
        h[:, 0] = 1.0
    return h.square().sum()


def hidden_part_changed(m, x):
    h = m["net"](x)
    h.data[:, 0] = 1.0
    return h.square().sum()


def with_hook(register, of=lambda net: net[0]):
    def layers():
        net = two()
        register(of(net))
        return {"net": net}

    return layers


def adding_up(m, x):
    m["net"][0].bias.register_hook(lambda g: 0.5 * g)
    return m["net"](x).sum()


def plain(m, x):
    return m["net"](x).square().sum()


def weight(net):
    return net[0].weight


# PyTorch 2.8 and earlier record only the lines of functions that are called `forward`.
LINE = HERE if installed() >= (2, 9) else r"torch_program.py:\d+"
NOT_RECORDED = {
    "a counter": (
        counted,
        None,
        "Program computes other numbers in each call: a number or tensor that Python",
    ),
    "a number of random": (
        lambda m, x: m["net"](x).sum() * random.random(),
        None,
        f"call, first at {HERE}: a",
    ),
    "a tensor of before": (
        smoothed,
        None,
        f"Program computes other numbers in each call, first at {HERE}: a",
    ),
    "hooks that add up": (
        adding_up,
        None,
        "Program computes other numbers in each call.*: a number or tensor",
    ),
    "a late hook": (late, None, rf"the hook sign of a value \({HERE}\) is registered after other values"),
    "requires_grad": (
        frozen,
        None,
        "forward leaves requires_grad=False at the parameter 'layers.net.0.weight'; set",
    ),
    "a hidden part": (
        hidden_part_changed,
        None,
        rf"changes a part of a detached tensor in place; compute all of it by torch.where \({LINE}\)",
    ),
    "a part": (part_changed, None, rf"changes a part of a tensor in place in torch.no_grad\(\) \({HERE}\)"),
    "backward": (
        lambda m, x: m["net"](x).sum().backward(),
        None,
        rf"forward calls backward \({HERE}\); return",
    ),
    "grad_fn": (
        lambda m, x: (h := m["net"](x), h.grad_fn.register_hook(print))[0].sum(),
        None,
        rf"forward uses grad_fn \({HERE}\).register_hook; register the hook on the tensor, by register_hook",
    ),
    "a branch": (
        plain,
        with_hook(lambda w: w.register_hook(lambda g: g if g.norm() < 1 else g / g.norm()), weight),
        rf"the hook lambda \({HERE}\) of the parameter 'layers.net.0.weight' cannot be traced; .*depends on data",
    ),
    "a hook after the gradient": (
        plain,
        with_hook(lambda w: w.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5)), weight),
        rf"the hook lambda \({HERE}\) of the parameter 'layers.net.0.weight' runs after its gradient is stored;",
    ),
    "an old hook": (
        plain,
        with_hook(lambda m: m.register_backward_hook(lambda *_: None)),
        rf"the hook lambda \({HERE}\) of the module 'layers.net.0' was registered by register_backward_hook; use",
    ),
    "a hook of a recurrent layer": (
        plain,
        lambda: (net := nn.GRU(6, 3), net.bias_hh_l0.register_hook(lambda g: 0.5 * g), {"net": net})[2],
        rf"the hook lambda \({HERE}\) of the parameter 'layers.net.bias_hh_l0' is one of a recurrent layer",
    ),
    "gradients of results": (
        plain,
        with_hook(
            lambda m: m.register_full_backward_hook(lambda m, g, d: (d[0].mean() * g[0],)), lambda n: n[2]
        ),
        rf"the hook lambda \({HERE}\) of the module 'layers.net.2' computes with grad_output; compute",
    ),
}


@pytest.mark.parametrize("name", NOT_RECORDED)
def test_what_torch_export_does_not_record_is_one_line(name):
    loss, layers, message = NOT_RECORDED[name]
    module = Program(loss, **(layers() if layers else {"net": two()}))
    with pytest.raises(ag.AutodiffError, match=message) as e:
        ag.from_torch(module, (BATCH, 6))
    assert "\n" not in str(e.value)


def test_hooks_of_all_modules_are_one_line():
    handle = nn.modules.module.register_module_full_backward_hook(lambda *_: None)
    try:
        with pytest.raises(
            ag.AutodiffError, match=r"the backward hook lambda .* is one of all modules; register"
        ):
            ag.from_torch(Program(plain, net=two()), (BATCH, 6))
    finally:
        handle.remove()
