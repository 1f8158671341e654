"""Recurrent layers, as in torch.nn: RNN, LSTM, GRU.

The product of the input and its weights is computed for all times before the loop, which is F.scan.
"""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ..errors import ShapeError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike, as_value
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.types import Dim, Size
from .dropout import probability
from .module import Module
from .recurrent_cells import Kind, States, check_sizes, kind_of, register_weights


class _Recurrent(Module):
    """Base of RNN, LSTM and GRU. dropout: the probability for the inputs of all layers but the first, in training
    mode."""

    printed = "input_size hidden_size num_layers=? bias=? batch_first=? dropout=? bidirectional=?"

    def __init__(
        self,
        kind: Kind,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        check_sizes(self.name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        self.dropout = probability(self.name, dropout)
        self.kind, self.input_size, self.hidden_size = kind, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.bidirectional, self.directions = bidirectional, 2 if bidirectional else 1
        for layer in range(num_layers):
            features = input_size if layer == 0 else hidden_size * self.directions
            for suffix in self._suffixes(layer):
                register_weights(self, kind, features, hidden_size, bias, suffix)

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self.directions]

    def _run(self, input: Any, hx: Any) -> tuple[Value, list[Value]]:
        """The output of the last layer, and the final states, [num_layers * directions, n, hidden_size] each."""
        x = as_value(input)
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            shape = f"[n, time, {self.input_size}]" if self.batch_first else f"[time, n, {self.input_size}]"
            raise ShapeError(
                f"{self.name}({x.type}): the input must be {shape}, or [time, {self.input_size}] for one sample"
            )
        unbatched = x.ndim == 2
        x = F.unsqueeze(x, 1) if unbatched else x
        given_first = self.batch_first and not unbatched
        n, time = (x.shape[k if given_first else 1 - k] for k in (0, 1))
        if isinstance(time, Dim):
            fix = "leave out batch_first=True" if given_first else "give batch_first=True"
            fix = f"the input must be [n, time, {self.input_size}]" if unbatched else fix
            raise ShapeError(
                f"{self.name}({as_value(input).type}): the time cannot be the axis of the batch n; {fix}"
            )
        batch_first = given_first or isinstance(n, Dim)  # a batch axis of variable extent is the outermost
        if batch_first != given_first:
            x = F.transpose(x, 0, 1)
        initial = self._initial(hx, n, unbatched)
        last: list[States] = []
        for layer in range(self.num_layers):
            x = F.dropout(x, self.dropout, self.training) if layer else x
            outputs = []
            for suffix in self._suffixes(layer):
                states, y = self._layer(x, initial[len(last)], suffix, batch_first)
                outputs.append(y if layer == self.num_layers - 1 else with_role(y, f"out{suffix}"))
                last.append(states)
            x = outputs[0] if len(outputs) == 1 else F.cat(outputs, -1)
        stacked = [F.stack([states[k] for states in last]) for k in range(self.kind.states)]
        if unbatched:
            return F.squeeze(x, 1), [F.squeeze(v, 1) for v in stacked]
        return x if batch_first == given_first else F.transpose(x, 0, 1), stacked

    def _initial(self, hx: Any, n: Size, unbatched: bool) -> list[States]:
        """The initial states of every layer and direction; zeros without hx."""
        count = self.num_layers * self.directions
        if hx is None:
            zeros = F.broadcast_to(0.0, (n, self.hidden_size))
            return [(zeros,) * self.kind.states] * count
        given = [as_value(v) for v in (hx if isinstance(hx, tuple | list) else [hx])]
        shape = (count, self.hidden_size) if unbatched else (count, n, self.hidden_size)
        if len(given) != self.kind.states or any(v.shape != shape for v in given):
            types = ", ".join(str(v.type) for v in given)
            wanted = "(h_0, c_0), each" if self.kind.states == 2 else "h_0,"
            raise ShapeError(f"{self.name}: the initial state must be {wanted} {list(shape)}, not {types}")
        whole = (n, self.hidden_size)
        return [tuple(F.reshape(F.select(v, 0, k), whole) for v in given) for k in range(count)]

    def _layer(self, x: Value, initial: States, suffix: str, batch_first: bool) -> tuple[States, Value]:
        """One layer in one direction: x[..., features] -> final states, y[..., hidden_size]."""
        w, u, b, c = (
            getattr(self, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        hoisted = (
            c is not None and self.kind.gates != 3
        )  # The bias c is added before the loop, except in a GRU, in which r may multiply it.
        bias = with_role(b + c, f"bias{suffix}") if hoisted else b
        inputs = with_role(F.linear(x, w, bias), "x_gates")

        product = self.kind.product(u, None if hoisted else c)

        def step(states: dict[str, Value], x: Value) -> tuple[dict[str, Value], Value]:
            new = self.kind.step(tuple(states.values()), x, product)
            return dict(zip("hc", new, strict=False)), new[0]

        inputs = F.transpose(inputs, 0, 1) if batch_first else inputs
        named = dict(zip("hc", initial, strict=False))
        last, y = F.scan(step, named, inputs, reverse=suffix.endswith("_reverse"))
        return tuple(last.values()), F.transpose(y, 0, 1) if batch_first else y


class RNN(_Recurrent):
    """h = tanh(W x + b + U h + c), or relu, over x[time, n, input_size] ([n, time, input_size] if batch_first).

    forward(x, h_0=None) -> (y, h_n): y is h at every time, [time, n, directions * hidden_size]; h_0 (zeros by default)
    and h_n are [num_layers * directions, n, hidden_size], also with batch_first. Without n, x is a single sequence.
    """

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        kind = kind_of("RNN", nonlinearity)
        super().__init__(kind, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)
        self.nonlinearity = nonlinearity

    def forward(self, input: TensorLike, hx: TensorLike | None = None) -> tuple[Value, Value]:
        y, (h,) = self._run(input, hx)
        return y, h


class LSTM(_Recurrent):
    """Hochreiter and Schmidhuber 1997, gates i, f, g, o, over x[time, n, input_size] ([n, time, input_size] if
    batch_first). forward(x, (h_0, c_0)=None) -> (y, (h_n, c_n)), with shapes as in RNN.
    """

    @torch_lacks(proj_size=0, device=None, dtype=None)
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        kind = kind_of("LSTM")
        super().__init__(kind, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)

    def forward(
        self, input: TensorLike, hx: tuple[TensorLike, TensorLike] | None = None
    ) -> tuple[Value, tuple[Value, Value]]:
        y, (h, c) = self._run(input, hx)
        return y, (h, c)


class GRU(_Recurrent):
    """Cho et al. 2014, gates r, z, n, over x[time, n, input_size] ([n, time, input_size] if batch_first).
    forward(x, h_0=None) -> (y, h_n), with shapes as in RNN. As in PyTorch, r multiplies U h + c; with reset_after=False
    (Keras' name) r multiplies h before the product, as in the paper.
    """

    printed = (
        "input_size hidden_size num_layers=? bias=? batch_first=? dropout=? bidirectional=? reset_after=?"
    )

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        reset_after: bool = True,
    ) -> None:
        kind = kind_of("GRU", reset_after=reset_after)
        super().__init__(kind, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)
        self.reset_after = reset_after

    def forward(self, input: TensorLike, hx: TensorLike | None = None) -> tuple[Value, Value]:
        y, (h,) = self._run(input, hx)
        return y, h
