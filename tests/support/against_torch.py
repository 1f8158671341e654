"""Functions beside PyTorch's of the same name: a row of a table is a name, an expression over F, and its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch_changes import older_than_change

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.host.trainer import host_function
from autodiff_gen.ir.build import make_input
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.types import Type, dtype

Row = tuple[str, Callable[..., Any], list[Any]]


class TorchFunctions:
    """torch.nn.functional, and torch's own functions where it has none."""

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch.nn.functional, name, None) or getattr(torch, name)


def prepared(operands: list[Any], suffix: str = "") -> tuple[list[Any], list[Any]]:
    """Inputs of the graph and arrays for them; `suffix` ends the inputs' names."""
    rng = np.random.default_rng(7)
    inputs, arrays = [], []
    for i, operand in enumerate(operands):
        if isinstance(operand, np.ndarray):
            array = operand.astype(np.float32) if operand.dtype.kind == "f" else operand
        elif len(operand) == 3 and isinstance(operand[1], str):
            shape, kind, high = operand
            array = np.asarray(rng.integers(0, high, shape), dtype=dtype(kind).numpy)
        else:
            array = np.asarray(rng.uniform(-2.0, 2.0, operand), dtype=np.float32)
        kinds = {"float32": "f32", "uint8": "u8", "int32": "s32", "bool": "bool"}
        inputs.append(make_input("abcdef"[i] + suffix, Type(dtype(kinds[array.dtype.name]), array.shape)))
        arrays.append(array)
    return inputs, arrays


def with_gradients(y: Any, inputs: list[Any]) -> list[Any]:
    """y, and the gradients of sum(y * (1, 2, 3, ...))."""
    if y.dtype.kind != "f":
        return [y]
    weights = 1.0 + np.arange(np.prod(y.shape, dtype=int)).reshape(y.shape).astype(np.float32)
    return [y, *grad(F.sum(y * weights), [x for x in inputs if x.dtype.kind == "f"])]


def torch_values(expression: Callable[..., Any], arrays: list[Any], kind: str) -> list[Any]:
    import torch

    tensors = [torch.tensor(a.astype(kind if a.dtype.kind == "f" else "int64")) for a in arrays]
    leaves = [t.requires_grad_() for t in tensors if t.dtype.is_floating_point]
    y = expression(TorchFunctions(), *tensors)
    if not y.dtype.is_floating_point:
        return [y.numpy()]
    weights = 1.0 + torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape)
    if not y.requires_grad:  # a constant
        return [y.numpy(), *(np.zeros(t.shape) for t in leaves)]
    found = torch.autograd.grad((y * weights).sum(), leaves, allow_unused=True)
    gradients = [torch.zeros_like(t) if g is None else g for g, t in zip(found, leaves, strict=True)]
    return [y.detach().numpy(), *(g.numpy(force=True) for g in gradients)]


def compared(name: str, results: list[Any]) -> list[Any]:
    """The value, and the gradients unless PyTorch changed them after the installed version."""
    return results[:1] if older_than_change(name) else results


def check_float64(row: Row, tolerance: float = 1e-10) -> None:
    """The value and every gradient, interpreted in float64."""
    name, expression, operands = row
    inputs, arrays = prepared(operands)
    outputs = compared(name, with_gradients(expression(F, *inputs), inputs))
    got = evaluate(outputs, dict(zip(inputs, arrays, strict=True)), float_dtype="float64")
    for a, b in zip(got, compared(name, torch_values(expression, arrays, "float64")), strict=True):
        assert np.shape(a) == np.shape(b)
        scale = max(1.0, float(np.max(np.abs(b))))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def check_c(row: Row, tolerance: float = 1e-5) -> None:
    """The value and every gradient, by the generated C on the host."""
    name, expression, operands = row
    inputs, arrays = prepared(operands)
    outputs = compared(name, with_gradients(expression(F, *inputs), inputs))
    got = host_function(ag.function(inputs, outputs), opt="-O0")(*arrays)
    for a, b in zip(got, compared(name, torch_values(expression, arrays, "float32")), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.max(np.abs(b)))))


def check_c_together(rows: list[Row], tolerance: float = 1e-5) -> None:
    """As check_c, all rows in one C function."""
    inputs, outputs, arrays, want = [], [], [], []
    for k, (name, expression, operands) in enumerate(rows):
        given, numbers = prepared(operands, f"{k}")
        found = compared(name, with_gradients(expression(F, *given), given))
        inputs += given
        arrays += numbers
        outputs += found
        wanted = compared(name, torch_values(expression, numbers, "float32"))
        want += [(f"{name} {i}", v) for i, v in enumerate(wanted)]
    got = host_function(ag.function(inputs, outputs), opt="-O0")(*arrays)
    for a, (name, b) in zip(got, want, strict=True):
        scale = max(1.0, float(np.max(np.abs(b))))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, err_msg=name)


def check_layer(make: Callable[[Any], Any], operands: list[Any], tolerance: float = 1e-5) -> None:
    """A layer or a network made of nn (ours, or torch.nn) in evaluation mode, with PyTorch's weights: names of
    parameters, the value, and the gradients of inputs and parameters, in float64."""
    import torch

    from autodiff_gen import nn

    twin, ours = make(torch.nn).double().eval(), make(nn).eval()
    ours.load_state_dict(twin.state_dict())
    inputs, arrays = prepared(operands)
    y = ours(*inputs)
    weights = dict(ours.named_parameters())
    theirs = dict(twin.named_parameters())
    assert list(weights) == list(theirs)
    outputs = with_gradients(y, [*inputs, *weights.values()])
    held = {v: twin.get_buffer(k).numpy() for k, v in ours.named_buffers()}
    feeds = {
        **dict(zip(inputs, arrays, strict=True)),
        **held,
        **{v: theirs[k].detach().numpy() for k, v in weights.items()},
    }
    got = evaluate(outputs, feeds, float_dtype="float64")
    leaves = [torch.tensor(a.astype("float64" if a.dtype.kind == "f" else "int64")) for a in arrays]
    trained = [t.requires_grad_() for t in leaves if t.dtype.is_floating_point] + list(theirs.values())
    z = twin(*leaves)
    scaled = z * (1.0 + torch.arange(z.numel(), dtype=z.dtype).reshape(z.shape))
    want = [z, *torch.autograd.grad(scaled.sum(), trained)]
    floats = [v.name for v in inputs if v.dtype.kind == "f"]
    for name, a, b in zip(["value", *floats, *weights], got, want, strict=True):
        expected = b.detach().numpy()
        scale = max(1.0, float(np.max(np.abs(expected))))
        np.testing.assert_allclose(a, expected, rtol=tolerance, atol=tolerance * scale, err_msg=name)
