"""The graph API: parameters, functions of them, `backward`, and C over one `float *buf`. See docs/graph-api.md.

    x = Param(None, shape=(1, 784), var_name="input")
    w = Param(None, shape=(10, 784), var_name="w")
    t = Param(None, shape=(1, 10), var_name="output")
    loss = nll_loss(log_softmax(matmul(x, w.t())), t)
    c = Interpreter(backward(loss, [w.id]).build(), [w, x, t])
    print(c.gen_code())
    print(c.gen_sgd(grads, [w.id]))

A thin layer over the IR: a Param has a graph value, always float32. Functions with names of PyTorch have its semantics,
except `nll_loss`, whose label is a vector of probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import functional as F
from ..autodiff import grad
from ..errors import GraphError, ShapeError
from ..ir.build import constant
from ..ir.graph import State
from ..ir.node import Node, Value, topological
from ..ir.op_kinds import Leaf as LeafOp
from .graph_c import GraphC, InputParam
from .param import Param, on_values

# Functions


def matmul(a: Any, b: Any) -> Param:
    """The matrix product, as torch.matmul."""
    return on_values(F.matmul, a, b)


def sigmoid(x: Any) -> Param:
    return on_values(F.sigmoid, x)


def relu(x: Any) -> Param:
    return on_values(F.relu, x)


def tanh(x: Any) -> Param:
    return on_values(F.tanh, x)


def log_softmax(x: Any, dim: int = -1) -> Param:
    """log(softmax(x)) along `dim`, by default the last axis."""
    return on_values(F.log_softmax, x, dim=dim)


def nll_loss(log_probs: Any, label: Any) -> Param:
    """The mean over rows of -sum(label * log_probs), a scalar. label: probabilities of log_probs' shape, not only
    one-hot."""
    p, t = _like(log_probs), _like(label)
    if p.shape != t.shape or len(p.shape) not in (1, 2):
        raise ShapeError(
            f"nll_loss({log_probs!r}, {label!r}): both must have one shape, [rows, classes] or [classes]; "
            "the label is a vector of probabilities, 1 for the target class and 0 elsewhere"
        )
    return on_values(lambda p, t: -F.mean(F.sum(t * p, -1)), p, t)


def mse(input: Any, target: Any) -> Param:
    """The mean of (input - target)^2 over all elements, a scalar; both of one shape."""
    return on_values(F.mse_loss, input, target)


def binary_cross_entropy(input: Any, target: Any) -> Param:
    """The mean of -(t log(p) + (1 - t) log(1 - p)), a scalar; each logarithm at least -100, as in PyTorch."""
    return on_values(F.binary_cross_entropy, input, target)


def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Param:
    """As torch.nn.functional.conv2d: [N, in, H, W], [out, in / groups, kh, kw], [out] -> [N, out, rows, columns]."""
    operands = (input, weight) if bias is None else (input, weight, bias)
    return on_values(F.conv2d, *operands, stride=stride, padding=padding, dilation=dilation, groups=groups)


def max_pool2d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Param:
    """As torch.nn.functional.max_pool2d: the largest element of each window of [N, C, H, W]."""
    return on_values(F.max_pool2d, input, kernel_size=kernel_size, stride=stride, padding=padding)


def _like(x: Any) -> Param:
    """x as a Param; an array is a constant of the graph."""
    return x if isinstance(x, Param) else Param.computed(constant(np.asarray(x, dtype=np.float32)))


# Gradients


# Param id -> its gradient, a Param, of every backward() in this process. If several graphs share a Param, its gradient
# is the last one's. `backward(...).build().grads` has the gradients of only one graph.
grads: dict[int, Param] = {}


class Ops(tuple[Node, ...]):
    """The ops of a loss and its gradients in topological order, forward, then backward."""

    loss: Param
    grads: dict[int, Param]


class backward:
    """The gradients of `loss`, a scalar, with respect to the Params with these ids; they are added to `grads`.

    Raises GraphError for a loss that is not a scalar, and for ids that it does not depend on.
    """

    def __init__(self, loss: Param, ids: Iterable[int]) -> None:
        if not isinstance(loss, Param):
            raise GraphError(f"backward: the loss must be a Param, got {type(loss).__name__}")
        if loss.shape != ():
            raise GraphError(f"backward: the loss is {loss!r}, not a scalar; end with nll_loss, mse, ...")
        self.loss = loss
        wanted = list(dict.fromkeys(ids))
        known = {p.id: p for p in _ancestors(loss)}
        for i in wanted:
            _check_wanted(i, known)
        values = grad(loss.value, [known[i].value for i in wanted])
        self.grads = {
            i: Param.computed(v, var_name=f"d_{known[i].var_name}" if known[i].var_name else None)
            for i, v in zip(wanted, values, strict=True)
        }
        grads.update(self.grads)

    def build(self) -> Ops:
        """The ops for Interpreter."""
        roots = [self.loss.value, *(g.value for g in self.grads.values())]
        ops = Ops(n for n in topological(roots) if not isinstance(n.op.lower, LeafOp))
        ops.loss, ops.grads = self.loss, self.grads
        return ops


def _check_wanted(i: Any, known: Mapping[int, Param]) -> None:
    if isinstance(i, Param):
        raise GraphError(f"backward: give ids, as in [w1.id, w2.id], not the Param {i!r} itself")
    if i not in known:
        raise GraphError(f"backward: the loss does not depend on a Param with id {i}; check the list of ids")
    if not known[i].require_grads:
        raise GraphError(f"backward: {known[i]!r} was created with require_grads=False; leave its id out")


def _ancestors(param: Param) -> list[Param]:
    """`param` and every Param that it depends on; iterative."""
    ancestors = {param.id: param}
    pending = [param]
    while pending:
        for p in pending.pop().sources:
            if p.id not in ancestors:
                ancestors[p.id] = p
                pending.append(p)
    return list(ancestors.values())


# C


class Interpreter:
    """Generates the C of `ops`, the result of `backward(...).build()`.

    params: every Param that the loss reads, in the order of their storage in buf. A computed Param in the list, such as
    the network's scores, is stored too and can be read after `forward`. Raises GraphError.
    """

    def __init__(self, ops: Ops, params: Sequence[Param]) -> None:
        if not isinstance(ops, Ops):
            raise GraphError("Interpreter: the first argument is what backward(loss, ids).build() returns")
        self.ops = ops
        names = _names(params)
        own = {g.id for g in ops.grads.values()}  # gradients are stored anyway
        inputs = [p for p in params if p.is_leaf]
        stored = [p for p in params if not p.is_leaf and p.id not in own]
        _check_listed([ops.loss, *stored], inputs)
        outputs = {"loss": ops.loss.value}
        first = ["loss", *(_put(outputs, names[p.id], p.value) for p in stored)]
        gradients: dict[State, str] = {}
        self._states: dict[int, State] = {}
        for k, (i, gradient) in enumerate(ops.grads.items(), start=1):
            name = _put(outputs, gradient.var_name or f"d_{names.get(i, f'value{k}')}", gradient.value)
            parameter = next((p for p in inputs if p.id == i), None)
            if parameter is not None:
                self._states[i] = parameter.state
                gradients[parameter.state] = name
        self._c = GraphC(
            [
                InputParam(names[p.id], p.state, p.data, "weight" if p.id in ops.grads else "input")
                for p in inputs
            ],
            outputs,
            first,
            gradients,
        )

    def gen_code(self) -> str:
        """A self-contained C file: offsets into buf, `graph_new()`, `forward(buf)`, `backward(buf)`."""
        return self._c.code()

    def gen_sgd(self, grads: Mapping[int, Param], ids: Iterable[int]) -> str:
        """`sgd(buf, lr)`, to append to gen_code's text: weights -= lr * gradients, for the Params with these ids."""
        states = []
        for i in dict.fromkeys(ids):
            if i not in grads or i not in self.ops.grads:
                raise GraphError(
                    f"gen_sgd: no gradient for id {i!r}; put it into the ids of backward(loss, ids)"
                )
            if grads[i] is not self.ops.grads[i]:
                raise GraphError(
                    f"gen_sgd: grads[{i}] is of a later backward(); give ops.grads of this graph's ops"
                )
            if i not in self._states:
                raise GraphError(f"gen_sgd: the Param with id {i} is computed; only parameters are updated")
            states.append(self._states[i])
        if not states:
            raise GraphError("gen_sgd: no ids given, so there is nothing to update")
        return self._c.sgd(states)


def _names(params: Sequence[Param]) -> dict[int, str]:
    """Param id -> its name in C."""
    names: dict[int, str] = {}
    for k, p in enumerate(params, start=1):
        if not isinstance(p, Param):
            raise GraphError(
                f"Interpreter: the list of parameters must contain Params, got {type(p).__name__}"
            )
        name = p.var_name or f"param{k}"
        if p.id in names:
            raise GraphError(f"Interpreter: {p!r} is listed twice; list it once")
        if name in names.values():
            raise GraphError(f"Interpreter: two parameters are called {name!r}; give one another var_name")
        names[p.id] = name
    return names


def _put(outputs: dict[str, Value], name: str, value: Value) -> str:
    """Add an output; returns its name, made unique by trailing _."""
    while name in outputs:
        name += "_"
    outputs[name] = value
    return name


def _check_listed(roots: Sequence[Param], inputs: Sequence[Param]) -> None:
    """Raise GraphError if a root depends on a parameter that is not in `inputs`."""
    listed = {p.id for p in inputs}
    for root in roots:
        for p in _ancestors(root):
            if p.is_leaf and p.id not in listed:
                raise GraphError(
                    f"Interpreter: {root!r} reads {p!r}, which is not in the list of parameters; add it"
                )
