"""One step of a recurrent network, as in torch.nn: RNNCell, LSTMCell, GRUCell; and the steps that RNN, LSTM and GRU
repeat."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import functional as F
from .. import init
from ..errors import ModelError, ShapeError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike, as_value
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.origin import named
from .module import Module
from .parameter import Parameter

States = tuple[Value, ...]  # h, and c of an LSTM: [n, hidden_size] each
Product = Callable[
    ..., Value
]  # (h, first=0, last=all) -> U h + b, only the rows of the gates first to last - 1
Step = Callable[[States, Value, Product], States]


def _rnn(nonlinearity: str) -> Step:
    activation = F.tanh if nonlinearity == "tanh" else F.relu
    return named("rnn_cell")(lambda states, x, product: (with_role(activation(x + product(states[0])), "h"),))


def _parts(x: Value, *roles: str) -> list[Value]:
    """x divided along its last axis into one part for each role."""
    return [with_role(v, role) for v, role in zip(F.chunk(x, len(roles), -1), roles, strict=True)]


@named("lstm_cell")
def _lstm(states: States, x: Value, product: Product) -> States:
    i, f, g, o = F.chunk(x + product(states[0]), 4, -1)
    i, f, o = (with_role(F.sigmoid(v), role) for v, role in ((i, "i"), (f, "f"), (o, "o")))
    c = with_role(f * states[1] + i * with_role(F.tanh(g), "g"), "c")
    return with_role(o * with_role(F.tanh(c), "tanh_c"), "h"), c


@named("gru_cell")
def _gru(states: States, x: Value, product: Product) -> States:
    h = product(states[0])
    (x_r, x_z, x_n), (h_r, h_z, h_n) = _parts(x, "x_r", "x_z", "x_n"), _parts(h, "h_r", "h_z", "h_n")
    z = with_role(F.sigmoid(x_z + h_z), "z")
    n = with_role(F.tanh(x_n + with_role(F.sigmoid(x_r + h_r), "r") * h_n), "n")
    return (with_role(n + z * with_role(states[0] - n, "difference"), "h"),)


@named("gru_cell")
def _gru_reset_before(states: States, x: Value, product: Product) -> States:
    x_r, x_z, x_n = _parts(x, "x_r", "x_z", "x_n")
    h_r, h_z = _parts(product(states[0], 0, 2), "h_r", "h_z")
    z = with_role(F.sigmoid(x_z + h_z), "z")
    reset = with_role(F.sigmoid(x_r + h_r), "r") * states[0]
    n = with_role(F.tanh(x_n + product(reset, 2, 3)), "n")
    return (with_role(n + z * with_role(states[0] - n, "difference"), "h"),)


class Kind:
    """The differences between RNN, LSTM and GRU: the number of gates and of states, and the step (states, W x + b,
    product) -> states."""

    def __init__(self, gates: int, states: int, step: Step) -> None:
        self.gates, self.states, self.step = gates, states, step

    def product(self, weight: Value, bias: Value | None) -> Product:
        """The product of the state with weight[gates * hidden_size, hidden_size], plus bias[gates * hidden_size]."""
        hidden = weight.shape[-1]

        def product(h: Value, first: int = 0, last: int = self.gates) -> Value:
            whole = (first, last) == (0, self.gates)
            u = weight if whole else weight[first * hidden : last * hidden]
            b = bias if whole or bias is None else bias[first * hidden : last * hidden]
            y = F.linear(h, u, b)
            if b is not None:
                with_role(y.node.operands[0], "hw")
            return with_role(y, "h_gates" if whole or first == 0 else "h_n")

        return product


def kind_of(name: str, nonlinearity: str = "tanh", reset_after: bool = True) -> Kind:
    if nonlinearity not in ("tanh", "relu"):
        raise ModelError(f'{name}: nonlinearity={nonlinearity!r}; known: "tanh", "relu"')
    if name.startswith("LSTM"):
        return Kind(4, 2, _lstm)
    if name.startswith("GRU"):
        return Kind(3, 1, _gru if reset_after else _gru_reset_before)
    return Kind(1, 1, _rnn(nonlinearity))


def check_sizes(name: str, **sizes: Any) -> None:
    for argument, n in sizes.items():
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise ModelError(f"{name}: {argument}={n!r} must be an integer of at least 1")


def register_weights(module: Module, kind: Kind, features: int, hidden: int, bias: bool, suffix: str) -> None:
    """Register the parameters of one layer in one direction, which start uniformly in +-1 / sqrt(hidden)."""
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


class _Cell(Module):
    """Base of RNNCell, LSTMCell and GRUCell: one step."""

    printed = "input_size hidden_size bias=?"

    def __init__(self, kind: Kind, input_size: int, hidden_size: int, bias: bool) -> None:
        super().__init__()
        self.name = type(self).__name__
        check_sizes(self.name, input_size=input_size, hidden_size=hidden_size)
        self.kind, self.input_size, self.hidden_size, self.bias = kind, input_size, hidden_size, bias
        register_weights(self, kind, input_size, hidden_size, bias, "")

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
        new = self.kind.step(given, gates, self.kind.product(self.weight_hh, self.bias_hh))
        return tuple(F.reshape(v, shape) for v in new)


class RNNCell(_Cell):
    """One step of an RNN: forward(x[n, input_size], h=None) -> h[n, hidden_size]. h is zeros by default; n may be
    absent."""

    printed = "input_size hidden_size bias=? nonlinearity=?"

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh"
    ) -> None:
        super().__init__(kind_of("RNNCell", nonlinearity), input_size, hidden_size, bias)
        self.nonlinearity = nonlinearity

    def forward(self, input: TensorLike, hx: TensorLike | None = None) -> Value:
        return self._run(input, hx)[0]


class LSTMCell(_Cell):
    """One step of an LSTM: forward(x[n, input_size], (h, c)=None) -> (h, c), with shapes as in RNNCell."""

    @torch_lacks(device=None, dtype=None)
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(kind_of("LSTMCell"), input_size, hidden_size, bias)

    def forward(
        self, input: TensorLike, hx: tuple[TensorLike, TensorLike] | None = None
    ) -> tuple[Value, Value]:
        h, c = self._run(input, hx)
        return h, c


class GRUCell(_Cell):
    """One step of a GRU: forward(x[n, input_size], h=None) -> h, with shapes as in RNNCell. reset_after: see GRU."""

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, reset_after: bool = True
    ) -> None:
        super().__init__(kind_of("GRUCell", reset_after=reset_after), input_size, hidden_size, bias)

    def forward(self, input: TensorLike, hx: TensorLike | None = None) -> Value:
        return self._run(input, hx)[0]
