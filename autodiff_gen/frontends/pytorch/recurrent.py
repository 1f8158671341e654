"""The shapes of recurrent layers while a module is exported: PyTorch runs all steps of a layer to find them, which
takes minutes for a sequence of thousands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def shapes_without_steps(torch: Any) -> Iterator[None]:
    """In the block, recurrent layers return empty tensors of their results' shapes; the exported program is the
    same."""
    aten, keys = torch.ops.aten, torch._C.DispatchKey
    layers = [aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input]
    before = [dict(layer.py_kernels) for layer in layers]
    for layer in layers:
        layer.py_kernels.update(dict.fromkeys((keys.CompositeImplicitAutograd, keys.Autograd), _results))
        layer._dispatch_cache.clear()
    try:
        yield
    finally:
        for layer, kernels in zip(layers, before, strict=True):
            layer.py_kernels.clear()
            layer.py_kernels.update(kernels)
            layer._dispatch_cache.clear()


def _results(input: Any, hx: Any, *options: Any) -> tuple[Any, ...]:
    """Empty results of a layer: the results of all steps, and the last state or states; `options` end with
    bidirectional and batch_first."""
    *_, bidirectional, batch_first = options
    states = hx if isinstance(hx, list | tuple) else [hx]
    int(input.shape[1 if batch_first else 0])  # the number of steps is a constant
    features = states[0].shape[-1] * (2 if bidirectional else 1)
    sizes = ((*input.shape[:2], features), *(s.shape for s in states))
    differentiable = any(t.requires_grad for t in (input, *states, *options[0]))
    return tuple(input.new_empty(size).requires_grad_(differentiable).clone() for size in sizes)
