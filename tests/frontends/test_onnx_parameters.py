"""Initializers of ONNX as parameters: their names, those in several layouts, and trained ones written into a file."""

import re

import numpy as np
import onnx
import pytest
from checkout import ROOT
from onnx.helper import make_node
from onnx_networks import NUMBERS, model, of_nodes

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.ir.interpreter import evaluate


def test_a_number_among_names_of_modules():
    made = of_nodes(
        make_node("Gemm", ["x", "body.0.weight"], ["h"], name="/body/0/Gemm"),
        make_node("Add", ["h", "0.bias"], ["y"], name="/0/Add"),
        **{"body.0.weight": NUMBERS[0, 0], "0.bias": NUMBERS[0, 0, 0]},
    )
    net = ag.from_onnx(made)
    assert [name for name, _ in net.named_parameters()] == ["body.0.weight", "0.bias"]


# Initializers in several layouts: name -> nodes, shapes, and the same by PyTorch.
TIED = {
    "Gemm, MatMul": (
        "a = Gemm <transB = 1> (x, w) b = Tanh (a) y = MatMul (b, w)",
        {"w": (4, 4)},
        lambda x, w: (x @ w.T).tanh() @ w,
    ),
    "Transpose, biases": (
        "a = MatMul (x, w) b = Add (a, c) d = Tanh (b) t = Transpose (w) e = MatMul (d, t) y = Add (e, g)",
        {"w": (4, 3), "c": (3,), "g": (4,)},
        lambda x, w, c, g: (x @ w + c).tanh() @ w.T + g,
    ),
    "Conv, Reshape, Gemm": (
        "u = Reshape (x, image) v = Conv (u, w) f = Flatten (v) b = Tanh (f) r = Reshape (w, rows) y = Gemm (b, r)",
        {"w": (4, 4, 1, 1)},
        lambda x, w: (x @ w[..., 0, 0].T).tanh() @ w[..., 0, 0],
    ),
    "Gather, MatMul": (
        "i = ArgMax <axis = 1, keepdims = 0> (x) e = Gather (w, i) b = Tanh (e) y = MatMul (b, w)",
        {"w": (4, 4)},
        lambda x, w: w[x.argmax(1)].tanh() @ w,
    ),
    "parts that overlap": (
        "p = Slice (w, zero, four) q = Slice (w, one, five) a = MatMul (x, p) b = Tanh (a) y = MatMul (b, q)",
        {"w": (5, 4)},
        lambda x, w: (x @ w[:4]).tanh() @ w[1:],
    ),
    "Expand": ("p = Expand (w, rows) y = MatMul (x, p)", {"w": (1, 4)}, lambda x, w: x @ w.expand(4, 4)),
    "Concat": (
        "d = Concat <axis = 1> (x, x) q = Concat <axis = 0> (w, v) a = MatMul (d, q) b = Tanh (a) y = MatMul (b, w)",
        {"w": (4, 4), "v": (4, 4)},
        lambda x, w, v: (x @ w + x @ v).tanh() @ w,
    ),
    "of length 1": (
        "l = ReduceL2 <axes = [0]> (w) u = Div (w, l) b = MatMul (x, u) t = Tanh (b) y = Gemm <transB = 1> (t, w)",
        {"w": (4, 4)},
        lambda x, w: (x @ (w / w.norm(dim=0))).tanh() @ w.T,
    ),
    "Mul, Sub": ("m = Mul (x, w) b = Tanh (m) y = Sub (b, w)", {"w": (4,)}, lambda x, w: (x * w).tanh() - w),
    "LayerNormalization, Sub, Gemm": (
        "l = LayerNormalization (x, w, c) m = Sub (l, c) y = Gemm (m, k, w)",
        {"w": (4,), "c": (4,), "k": (4, 4)},
        lambda x, w, c, k: (
            ((x - x.mean(1, True)) / (x.var(1, False, keepdim=True) + 1e-5).sqrt() * w + c - c) @ k + w
        ),
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", TIED)
def test_an_initializer_in_several_layouts_is_one_parameter(name):
    """... in the layout of the file, and gets the gradient of all."""
    import torch

    text, shapes, function = TIED[name]
    places = {"zero": [0], "one": [1], "four": [4], "five": [5], "rows": [4, 4], "image": [-1, 4, 1, 1]}
    made = model(
        f"net (float[n,4] x) => (float[n,4] y) {{ {text} }}",
        **shapes,
        **{n: np.int64(v) for n, v in places.items()},
    )
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in made.graph.initializer if t.name in shapes}
    theirs = {n: torch.tensor(a, requires_grad=True) for n, a in arrays.items()}
    array = np.random.default_rng(5).normal(size=(3, 4)).astype("f4")
    function(torch.tensor(array), *theirs.values()).square().sum().backward()
    x = ag.Input("x", (3, 4))
    net = ag.from_onnx(made)
    loss = F.sum(F.square(net(x)))
    ours = dict(net.named_parameters())
    state = net.state_dict()
    assert sorted(state[n].shape for n in ours) == sorted(
        s if n != "k" else (4, 4) for n, s in shapes.items()
    )
    feeds = {x: array, **{v: state[n] for n, v in ours.items()}}
    gradients = evaluate(ag.grad(loss, list(ours.values())), feeds)
    for parameter, found in zip(ours, gradients, strict=True):
        (wanted,) = (
            t.grad.numpy() if np.array_equal(arrays[n], state[parameter]) else t.grad.numpy().T
            for n, t in theirs.items()
            if np.array_equal(np.sort(arrays[n], None), np.sort(state[parameter], None))
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, err_msg=parameter)


@pytest.mark.parametrize(("transposed", "shared"), ((False, False), (True, False), (False, True)))
def test_the_program_of_the_page_writes_trained_weights_into_the_file(
    transposed, shared, tmp_path, monkeypatch, capsys
):
    nodes = (
        make_node("MatMul", ["x", "c1.w"], ["p"], "c1/MatMul"),
        make_node("Add", ["p", "c1.b"], ["s"], "c1/Add"),
        make_node("Gemm", ["s", "fc.weight", "fc.bias"], ["y"], "fc/Gemm", transB=int(transposed)),
        make_node("Transpose", ["fc.weight"], ["t"]),
        make_node("MatMul", ["y", "t"], ["z"]),
    )
    shapes = {"c1.w": (4, 4), "c1.b": (1, 4), "fc.weight": (4, 4), "fc.bias": (4,)}
    start = {
        n: np.random.default_rng(k).normal(size=s).astype("f4") for k, (n, s) in enumerate(shapes.items())
    }
    monkeypatch.chdir(tmp_path)
    made = of_nodes(*nodes, outputs=("z",), **start) if shared else of_nodes(*nodes[:3], **start)
    onnx.save(made, "net.onnx")
    trained = {n: (a + 1).astype("f4") for n, a in ag.from_onnx("net.onnx").state_dict().items()}
    np.savez("trained.npz", **trained, **{"optimizer.step": np.float32(3)})
    page = (ROOT / "docs" / "importing.md").read_text()
    exec(
        next(text for text in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if "CopyFrom" in text),
        {},
    )
    assert capsys.readouterr().out == "not in the file: ['optimizer.step']\n"
    found = ag.from_onnx("trained.onnx").state_dict()
    assert found.keys() == trained.keys()
    for name, array in trained.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
