"""Recurrent layers and cells, as in torch.nn: RNN, LSTM, GRU.

The product of the input and its weights is computed for all times before the loop, which is F.scan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import functional as F
from .. import init
from ..errors import ModelError, ShapeError
from ..functional import torch_lacks
from ..functional.arguments import as_value
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.types import Dim, Size
from .dropout import probability
from .module import Module
from .parameter import Parameter

States = tuple[Value, ...]  # h, and c of an LSTM: [n, hidden_size] each


def _rnn(nonlinearity: str) -> Callable[[States, Value, Value], States]:
    activation = F.tanh if nonlinearity == "tanh" else F.relu
    return lambda states, x, h: (with_role(activation(x + h), "h"),)


def _lstm(states: States, x: Value, h: Value) -> States:
    i, f, g, o = F.chunk(x + h, 4, -1)
    i, f, o = (with_role(F.sigmoid(v), role) for v, role in ((i, "i"), (f, "f"), (o, "o")))
    c = with_role(f * states[1] + i * with_role(F.tanh(g), "g"), "c")
    return with_role(o * with_role(F.tanh(c), "tanh_c"), "h"), c


def _gru(states: States, x: Value, h: Value) -> States:
    (x_r, x_z, x_n), (h_r, h_z, h_n) = F.chunk(x, 3, -1), F.chunk(h, 3, -1)
    z = with_role(F.sigmoid(x_z + h_z), "z")
    n = with_role(F.tanh(x_n + with_role(F.sigmoid(x_r + h_r), "r") * h_n), "n")
    return (with_role(n + z * (states[0] - n), "h"),)


class _Kind:
    """The differences between RNN, LSTM and GRU: the number of gates and of states, and the step (states, W x + b,
    U h + b) -> states."""

    def __init__(self, gates: int, states: int, step: Callable[[States, Value, Value], States]) -> None:
        self.gates, self.states, self.step = gates, states, step


def _kind(name: str, nonlinearity: str = "tanh") -> _Kind:
    if nonlinearity not in ("tanh", "relu"):
        raise ModelError(f'{name}: nonlinearity={nonlinearity!r}; known: "tanh", "relu"')
    if name.startswith("LSTM"):
        return _Kind(4, 2, _lstm)
    return _Kind(3, 1, _gru) if name.startswith("GRU") else _Kind(1, 1, _rnn(nonlinearity))


def _check_sizes(name: str, **sizes: Any) -> None:
    for argument, n in sizes.items():
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise ModelError(f"{name}: {argument}={n!r} must be a whole number of at least 1")


def _weights(module: Module, kind: _Kind, features: int, hidden: int, bias: bool, suffix: str) -> None:
    """Register the parameters of one layer in one direction, initialised uniformly within 1 / sqrt(hidden_size)."""
    rows, bound = kind.gates * hidden, 1.0 / math.sqrt(hidden)
    shapes = {
        "weight_ih": (rows, features),
        "weight_hh": (rows, hidden),
        "bias_ih": (rows,),
        "bias_hh": (rows,),
    }
    for name, shape in shapes.items():
        wanted = bias or len(shape) == 2
        parameter = Parameter(init.uniform(shape, bound)) if wanted else None
        module.register_parameter(name + suffix, parameter)


class _Recurrent(Module):
    """Base of RNN, LSTM and GRU. dropout: of the input of each layer except the first, in training mode."""

    def __init__(
        self,
        kind: _Kind,
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
        _check_sizes(self.name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        self.dropout = probability(self.name, dropout)
        self.kind, self.input_size, self.hidden_size = kind, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.bidirectional, self.directions = bidirectional, 2 if bidirectional else 1
        for layer in range(num_layers):
            features = input_size if layer == 0 else hidden_size * self.directions
            for suffix in self._suffixes(layer):
                _weights(self, kind, features, hidden_size, bias, suffix)

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
        n = x.shape[0 if given_first else 1]
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
                outputs.append(y)
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
        inputs = F.linear(x, w, b)
        hoisted = (
            c is not None and self.kind.gates != 3
        )  # the bias c is added before the loop, except in a GRU
        if hoisted:
            inputs = inputs + c
        with_role(inputs, "x_gates")

        def step(states: dict[str, Value], x: Value) -> tuple[dict[str, Value], Value]:
            old = tuple(states.values())
            gates = with_role(F.linear(old[0], u, None if hoisted else c), "h_gates")
            new = self.kind.step(old, x, gates)
            return dict(zip("hc", new, strict=False)), new[0]

        inputs = F.transpose(inputs, 0, 1) if batch_first else inputs
        named = dict(zip("hc", initial, strict=False))
        last, y = F.scan(step, named, inputs, reverse=suffix.endswith("_reverse"))
        return tuple(last.values()), F.transpose(y, 0, 1) if batch_first else y


class RNN(_Recurrent):
    """h = tanh(W x + b + U h + c), or relu, over x[time, n, input_size] ([n, time, input_size] if batch_first).

    forward(x, h_0=None) -> (y, h_n): y is h at every time, h_n [num_layers * directions, n, hidden_size].
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
        kind = _kind("RNN", nonlinearity)
        super().__init__(kind, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> tuple[Value, Value]:
        y, (h,) = self._run(input, hx)
        return y, h


class LSTM(_Recurrent):
    """Hochreiter and Schmidhuber 1997, gates i, f, g, o, over x[time, n, input_size] ([n, time, input_size] if
    batch_first). forward(x, (h_0, c_0)=None) -> (y, (h_n, c_n)).
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
        kind = _kind("LSTM")
        super().__init__(kind, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)

    def forward(self, input: Any, hx: Any = None) -> tuple[Value, tuple[Value, Value]]:
        y, (h, c) = self._run(input, hx)
        return y, (h, c)


class GRU(_Recurrent):
    """Cho et al. 2014, gates r, z, n, where r also multiplies the recurrent bias of n, over x[time, n, input_size]
    ([n, time, input_size] if batch_first). forward(x, h_0=None) -> (y, h_n).
    """

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
    ) -> None:
        kind = _kind("GRU")
        super().__init__(kind, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)

    def forward(self, input: Any, hx: Any = None) -> tuple[Value, Value]:
        y, (h,) = self._run(input, hx)
        return y, h


class _Cell(Module):
    """Base of RNNCell, LSTMCell and GRUCell: one step."""

    def __init__(self, kind: _Kind, input_size: int, hidden_size: int, bias: bool) -> None:
        super().__init__()
        self.name = type(self).__name__
        _check_sizes(self.name, input_size=input_size, hidden_size=hidden_size)
        self.kind, self.input_size, self.hidden_size, self.bias = kind, input_size, hidden_size, bias
        _weights(self, kind, input_size, hidden_size, bias, "")

    def _run(self, input: Any, hx: Any) -> States:
        x = as_value(input)
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{self.name}({x.type}): the input must be [n, {self.input_size}] or [{self.input_size}]"
            )
        shape = (*x.shape[:-1], self.hidden_size)
        if hx is None:
            given: States = (F.broadcast_to(0.0, shape),) * self.kind.states
        else:
            given = tuple(as_value(v) for v in (hx if isinstance(hx, tuple | list) else [hx]))
            if len(given) != self.kind.states or any(v.shape != shape for v in given):
                types = ", ".join(str(v.type) for v in given)
                wanted = "(h, c), each" if self.kind.states == 2 else "h,"
                raise ShapeError(f"{self.name}: the state must be {wanted} {list(shape)}, not {types}")
        if x.ndim == 1:
            x, given = F.unsqueeze(x, 0), tuple(F.unsqueeze(v, 0) for v in given)
        gates = with_role(F.linear(x, self.weight_ih, self.bias_ih), "x_gates")
        recurrent = with_role(F.linear(given[0], self.weight_hh, self.bias_hh), "h_gates")
        new = self.kind.step(given, gates, recurrent)
        return tuple(F.reshape(v, shape) for v in new)


class RNNCell(_Cell):
    """One step of an RNN: forward(x[n, input_size], h=None) -> h."""

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh"
    ) -> None:
        super().__init__(_kind("RNNCell", nonlinearity), input_size, hidden_size, bias)

    def forward(self, input: Any, hx: Any = None) -> Value:
        return self._run(input, hx)[0]


class LSTMCell(_Cell):
    """One step of an LSTM: forward(x[n, input_size], (h, c)=None) -> (h, c)."""

    @torch_lacks(device=None, dtype=None)
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(_kind("LSTMCell"), input_size, hidden_size, bias)

    def forward(self, input: Any, hx: Any = None) -> tuple[Value, Value]:
        h, c = self._run(input, hx)
        return h, c


class GRUCell(_Cell):
    """One step of a GRU: forward(x[n, input_size], h=None) -> h."""

    @torch_lacks(device=None, dtype=None)
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(_kind("GRUCell"), input_size, hidden_size, bias)

    def forward(self, input: Any, hx: Any = None) -> Value:
        return self._run(input, hx)[0]
