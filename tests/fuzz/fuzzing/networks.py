"""Small valid networks of PyTorch and ONNX, as files."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

Files = dict[str, bytes]


def torch_networks() -> list[Files]:
    """Files of torch.export.save, of older versions of PyTorch too; made in another process, as PyTorch makes
    those that it is loaded in large."""
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch_archives import LAYOUTS, older

    from autodiff_gen.frontends.pytorch.export import saved

    class Complex(nn.Module):
        """A spectrum with a complex buffer."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("phases", torch.polar(torch.ones(5), torch.arange(5.0)))
            self.scale = nn.Parameter(torch.ones(5))

        def forward(self, x: Any) -> Any:
            return torch.view_as_real(torch.fft.rfft(x) * self.phases).flatten(1)[:, :5] * self.scale

    class Tied(nn.Module):
        """An embedding that shares its weight with the last layer, and views."""

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(7, 4)
            self.last = nn.Linear(4, 7, bias=False)
            self.last.weight = self.table.weight
            self.norm = nn.LayerNorm(4)

        def forward(self, x: Any) -> Any:
            y = self.norm(self.table(x)).transpose(1, 2)
            y = F.pad(torch.cat([y[:, :2], y[:, 2:]], dim=1), (1, 0))[:, :, 1:].permute(0, 2, 1)
            return self.last(y.reshape(-1, 3, 4).mean(1))

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(3, 4, batch_first=True)
            self.fc = nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            y, last = self.gru(x)
            return self.fc(y[:, -1] + last[0])

    class Counts(nn.Module):
        """A buffer that a call changes, an index, a mask, a random number."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))
            self.register_buffer("order", torch.tensor([2, 0, 1]))
            self.fc = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            self.seen.add_(1)
            y = self.fc(x)[:, self.order]
            return torch.where(y > 0, y, y.exp() - 1).clamp(-1.0, 5.0) / self.seen.clamp(min=1)

    torch.manual_seed(1)
    convolution = nn.Sequential(
        nn.Conv2d(1, 2, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(2), nn.ReLU(), nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3),
    )  # fmt: skip
    made = (
        (convolution, (1, 1, 6, 6)),
        (Recurrent(), (1, 3, 3)),
        (Complex(), (1, 8)),
        (Tied(), torch.zeros(1, 3, dtype=torch.long)),
        (Counts(), (1, 3)),
    )
    files = [{"net.pt2": saved(net, example).getvalue()} for net, example in made]
    tied = files[3]["net.pt2"]
    files += [{"net.pt2": older(tied, layout)} for layout in LAYOUTS[:2]]  # `check` reads them too
    batch = torch.export.Dim("batch", min=1, max=64)
    free = torch.export.export(
        nn.Sequential(nn.Linear(4, 3), nn.Tanh()), (torch.zeros(2, 4),), dynamic_shapes=({0: batch},)
    )
    file = io.BytesIO()
    torch.export.save(free, file)
    return [*files, {"net.pt2": file.getvalue()}]


def state_dicts() -> list[Files]:
    """Files of torch.save, for the model of `formats`."""
    import torch

    states = (
        {"weight": torch.ones(3, 4), "bias": torch.zeros(3)},
        {
            "weight": torch.ones(4, 3).t(),
            "bias": torch.nn.Parameter(torch.zeros(3)),
            "count": torch.tensor(3),
        },
    )
    files = []
    for state in states:
        file = io.BytesIO()
        torch.save(state, file)
        files.append({"weights.pt": file.getvalue()})
    return files


_CONTROL = """net (float[n,4] x) => (float[n,4] y) {
    three = Constant <value = int64 {3}> ()
    yes = Constant <value = bool {1}> ()
    a = Loop (three, yes, x) <body = b (int64 k, bool go, float[n,4] old) => (bool on, float[n,4] new) {
        on = Identity (go)
        half = Mul (old, w)
        new = Tanh (half)
    }>
    y = If (yes) <then_branch = t () => (float[n,4] p) { p = Relu (a) },
                  else_branch = e () => (float[n,4] q) { q = Neg (a) }>
}"""
_SHAPES = """net (float[n,2,6] x) => (float[n,4] z) {
    shape = Shape (x)
    zero = Constant <value = int64 {0}> ()
    one = Constant <value = int64[1] {0}> ()
    rest = Constant <value = int64[1] {-1}> ()
    batch = Gather (shape, zero)
    batches = Unsqueeze (batch, one)
    size = Concat <axis = 0> (batches, rest)
    flat = Reshape (x, size)
    starts = Constant <value = int64[1] {1}> ()
    ends = Constant <value = int64[1] {5}> ()
    part = Slice (flat, starts, ends, starts)
    u, v = Split <axis = 1, num_outputs = 2> (part)
    both = Concat <axis = 1> (v, u)
    y = Gemm <alpha = 0.5, transB = 1> (both, w, c)
    pads = Constant <value = int64[4] {0, 1, 0, 0}> ()
    z0 = Pad (y, pads)
    z = Softmax <axis = 1> (z0)
}"""
_FUNCTIONS = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
net (float[n,4] x) => (float[n,4] y) { a = own.twice <alpha = 0.3> (x, w)  y = own.twice <alpha = 0.1> (a, w) }
<domain: "own", opset_import: ["" : 17]>
twice <alpha> (x, w) => (y) { a = LeakyRelu <alpha: float = @alpha> (x)  y = Mul (a, w) }"""
_GRU = """net (float[n,5,3] x) => (float[n,4] y) {
    t = Transpose <perm = [1, 0, 2]> (x)
    a, h = GRU <hidden_size = 4> (t, w, r, b)
    y = Squeeze (h, axes)
}"""
_OLD = """net (float[n,1,6,6] x) => (float[n,2] y) {
    a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w, b)
    a1 = BatchNormalization <epsilon = 0.001> (a, s, b, m, v)
    c = Clip <min = 0.0, max = 6.0> (a1)
    d = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
    e = ReduceMean <axes = [2, 3], keepdims = 0> (d)
    y = Dropout <ratio = 0.5> (e)
}"""


def onnx_networks() -> list[Files]:
    """Files of ONNX: convolutions of an early opset, shapes, control flow, functions, recurrence, external data."""
    import onnx
    from onnx import helper, numpy_helper, parser

    def model(text: str, opset: int = 18, **arrays: Any) -> Any:
        head = "" if text.startswith("<") else f'<ir_version: 8, opset_import: ["" : {opset}]>\n'
        made = parser.parse_model(head + text)
        made.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in arrays.items())
        return made

    def ones(*shape: int) -> Any:
        return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)

    made: list[Callable[[], Any]] = [
        lambda: model(_OLD, 11, w=ones(2, 1, 3, 3), b=ones(2), s=ones(2), m=ones(2), v=np.float32([1, 2])),
        lambda: model(_SHAPES, 18, w=ones(3, 4), c=ones(3)),
        lambda: model(_CONTROL, 17, w=ones(4)),
        lambda: model(_FUNCTIONS, w=ones(4)),
        lambda: model(
            _GRU,
            14,
            axes=np.int64([0]),
            w=ones(1, 12, 3),
            r=ones(1, 12, 4),
            b=ones(1, 24),
        ),
    ]
    files = [{"net.onnx": f().SerializeToString()} for f in made]
    outside = model("net (float[n,64] x) => (float[n,64] y) { y = MatMul (x, w) }", w=ones(64, 64))
    (tensor,) = outside.graph.initializer
    data = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "0"), ("length", str(len(data)))):
        tensor.external_data.add(key=key, value=value)
    constant = helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(ones(64), "k"))
    outside.graph.node.insert(0, constant)
    return [*files, {"net.onnx": outside.SerializeToString(), "weights.bin": data}]
