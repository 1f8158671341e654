"""Every activation, loss, distance, elementwise function and reduction at its kinks, beside PyTorch's.

The cases come from the signatures of the functions and layers, so a new one is a case by itself. A new argument needs
its values in OPTIONS, or arrays in OPERANDS.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from against_torch import TorchFunctions, prepared
from pairwise import pairwise
from torch_changes import older_than_change, older_than_second

from autodiff_gen import functional as F
from autodiff_gen import nn
from autodiff_gen.autodiff import grad
from autodiff_gen.ir.interpreter import evaluate

FAMILIES = (
    *("activations", "class_losses", "composites", "distance_losses", "distances", "elementwise", "losses"),
    *("margin_losses", "reductions", "softmax"),
)
NO_KINKS = ("addcdiv", "addcmul", "lerp", "masked_fill", "movedim", "swapaxes", "to", "CTCLoss")
FUNCTIONS = [
    name
    for name in F.__all__
    if getattr(F, name).__module__.rpartition(".")[2] in FAMILIES and name not in NO_KINKS
]
LAYERS = [
    name
    for module in (nn.activations, nn.losses, nn.margin_losses, nn.distances)
    for name, layer in vars(module).items()
    if inspect.isclass(layer) and layer.__module__ == module.__name__ and name in {*nn.__all__} - {*NO_KINKS}
]

# Kinks of all functions with the options below, numbers between, and numbers beyond which exp overflows.
AT = (0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 20, 100, 1000)
KINKS = np.float32([-0.0, *AT, *(-x for x in AT), 2.5, -2.5, 0.625, -0.625])
SIGNS = (1, -1)
TARGETS = (0, 1, 0.5, -1, 2)
CERTAIN = (0, 1, 0.5, 2.0**-20, 1 - 2.0**-20)  # probabilities
ROWS = np.float32(
    [[0, 0, 0], [1, 1, 1], [3, 0, -4], [0, 2, 0], [-1, 1, -1], [100, -100, 0], [0.5, 0.5, -0.5], [1, 2, 2]]
)
LABELS = np.int32([0, 1, 2, 0, 1, 2, 0, 1])


def grid(*values: Any) -> list[Any]:
    """Arrays of one axis: all combinations of the values."""
    return [m.ravel() for m in np.meshgrid(*(np.float32(v) for v in values))]


def pairs_of_rows(*others: Any) -> list[Any]:
    """Every row beside every row, and what else each pair has."""
    first, second = np.indices((len(ROWS), len(ROWS))).reshape(2, -1)
    return [ROWS[first], ROWS[second], *others]


# Operands by the names of arguments, or by the name of a function where it needs others.
OPERANDS: dict[Any, list[Any]] = {
    ("input",): [KINKS],
    ("input", "weight"): [KINKS, np.float32([0.25])],
    ("input", "other"): grid(KINKS, KINKS),
    ("condition", "input", "other"): [np.arange(31) % 2 > 0, KINKS, KINKS[::-1].copy()],
    ("input", "target"): grid(KINKS, TARGETS),
    ("input1", "input2", "target"): grid(KINKS, (0, 1, -1), SIGNS),
    ("input", "target", "var"): grid(KINKS, (0, 1), (0.25, 0.5, 1, 2)),
    ("x1", "x2"): pairs_of_rows(),
    ("anchor", "positive", "negative"): [*pairs_of_rows(), np.roll(pairs_of_rows()[1], 3, 0)],
}
OF_OTHER_OPERANDS: dict[tuple[str, ...], list[Any]] = {
    ("binary_cross_entropy", "BCELoss"): grid(CERTAIN, CERTAIN),
    ("cosine_embedding_loss", "CosineEmbeddingLoss"): pairs_of_rows(
        np.resize(np.int32(SIGNS), len(ROWS) ** 2)
    ),
    ("multilabel_soft_margin_loss", "MultiLabelSoftMarginLoss"): [
        v.reshape(-1, len(KINKS)) for v in grid(KINKS, TARGETS)
    ],
    ("soft_margin_loss", "SoftMarginLoss"): [*grid(KINKS, SIGNS)[:1], grid(KINKS, SIGNS)[1].astype(np.int32)],
    ("cross_entropy", "nll_loss", "multi_margin_loss"): [ROWS, LABELS],
    ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"): [ROWS, LABELS],
    ("glu", "log_softmax", "softmax", "softmin", "all", "any", "normalize"): [ROWS],
    ("GLU", "LogSoftmax", "Softmax", "Softmin"): [ROWS],
    ("logical_and", "logical_or", "logical_xor"): [np.arange(4) % 2 > 0, np.arange(4) > 1],
    ("logical_not",): [np.arange(2) > 0],
}
OPERANDS |= {name: arrays for names, arrays in OF_OTHER_OPERANDS.items() for name in names}
# Values of an argument; values for one function only have its name before the argument's.
OPTIONS: dict[str, tuple[Any, ...]] = {
    "alpha": (1.0, 0.5, 2.0, -0.5),
    "approximate": ("none", "tanh"),
    "beta": (1.0, 0.5, 2.0, -2.0),
    "smooth_l1_loss.beta": (1.0, 0.5, 2.0, 0.0),
    "SmoothL1Loss.beta": (1.0, 0.5, 2.0, 0.0),
    "correction": (1, 0),
    "delta": (1.0, 0.5, 2.0),
    "dim": (1, 0),
    "glu.dim": (0,),
    "GLU.dim": (0,),
    "distance_function": (None,),
    "eps": (1e-6, 0.5),
    "exponent": (0, 1, 2, 3, 0.5, -0.5, -1, 1.5, 0.25),
    "full": (False, True),
    "ignore_index": (-100, 1),
    "init": (0.25,),
    "inplace": (False,),
    "keepdim": (False, True),
    "label_smoothing": (0.0, 0.5),
    "lambd": (0.5, 0.0, 2.0, 1.0),
    "log_input": (True, False),
    "log_target": (False, True),
    "margin": (1.0, 0.5, 0.0, 2.0),
    "max": (None, 1.0, 6.0, -0.5, np.inf),
    "max_val": (1.0, 6.0, 0.5),
    "min": (None, -1.0, 0.0, 0.5, -np.inf),
    "min_val": (-1.0, 0.0, 0.5),
    "negative_slope": (0.01, 0.5, 0.0, -0.5, 2.0),
    "num_parameters": (1,),
    "p": (2, 1),
    "norm.p": (2, 1, 3, np.inf),
    "pos_weight": (None,),
    "reduction": ("none", "mean"),
    "swap": (False, True),
    "threshold": (1.0, 0.0, 20.0, -1.0),
    "value": (0.0, -3.0),
    "weight": (None,),
}


# Where PyTorch departs from its own formula.
UNLIKE_TORCH = {
    ("soft_margin_loss", "value"): "exp overflows",
    ("SoftMarginLoss", "value"): "exp overflows",
    ("prelu", "second"): "the mixed derivative at 0 is 0, although the derivative of weight * input is 1",
}


class Case(NamedTuple):
    name: str
    options: dict[str, Any]
    operands: list[Any]

    def of(self, functions: Any, layers: Any) -> Any:
        """The function, or the layer with the options, of arguments that are the operands."""
        if self.name in LAYERS:
            return getattr(layers, self.name)(**self.options)
        return lambda *given: getattr(functions, self.name)(*given, **self.options)


def _options(name: str, call: Callable[..., Any], without: set[str]) -> list[dict[str, Any]]:
    """Values of the arguments without those that are the default: in pairs, for a layer one after the other."""
    given = {k: p.default for k, p in inspect.signature(call).parameters.items() if k not in without}
    values = [OPTIONS.get(f"{name}.{k}") or OPTIONS[k] for k in given]
    values = [
        (None, *v) if k == "dim" and given[k] in (None, ()) else v for k, v in zip(given, values, strict=True)
    ]
    if name in LAYERS:
        firsts = [v[0] for v in values]
        rows = [(*firsts[:k], v, *firsts[k + 1 :]) for k, vs in enumerate(values) for v in vs] or [()]
    else:
        rows = pairwise(*values) if len(values) > 1 else [(v,) for v in values[0]] if values else [()]
    changed = [
        {k: v for (k, default), v in zip(given.items(), row, strict=True) if v is not None and v != default}
        for row in rows
    ]
    return [o for k, o in enumerate(changed) if o not in changed[:k] and (name != "clamp" or o)]


def cases() -> Iterator[Case]:
    known = {k for key in OPERANDS if isinstance(key, tuple) for k in key} - {"weight"}
    for name in FUNCTIONS:
        call = getattr(F, name)
        names = inspect.signature(call).parameters
        mine = [
            k for k in names if k in known or (k == "weight" and names[k].default is inspect.Parameter.empty)
        ]
        arrays = OPERANDS.get(name) or OPERANDS[tuple(mine)]
        if call.__module__.endswith("reductions"):
            arrays = [ROWS]
        yield from (Case(name, o, arrays) for o in _options(name, call, set(mine)))
    for name in LAYERS:
        layer = getattr(nn, name)
        arrays = OPERANDS.get(name) or OPERANDS[tuple(inspect.signature(layer.forward).parameters)[1:]]
        yield from (Case(name, o, arrays) for o in _options(name, layer.__init__, {"self"}))


def _direction(operand: int, shape: tuple[int, ...]) -> Any:
    return np.cos(1.0 + operand + np.arange(np.prod(shape, dtype=int))).reshape(shape).astype(np.float32)


def ours(case: Case) -> list[Any]:
    """The value; the gradients of sum(value * (1, 2, ...)); of a function, and the gradients of the inner product of
    these with directions."""
    inputs, arrays = prepared(case.operands)
    call = case.of(F, nn)
    y = _first(call(*inputs))
    outputs = [y]
    floats = [x for x in inputs if x.dtype.kind == "f"]
    if y.dtype.kind == "f" and floats:
        weights = 1.0 + np.arange(np.prod(y.shape, dtype=int)).reshape(y.shape).astype(np.float32)
        first = grad(F.sum(y * weights), floats)
        outputs += first
        if case.name not in LAYERS:
            outputs += grad(sum(F.sum(g * _direction(k, g.shape)) for k, g in enumerate(first)), floats)
    feeds = dict(zip(inputs, arrays, strict=True))
    if case.name in LAYERS:
        feeds |= {p: np.full(p.shape, 0.25) for p in call.parameters()}
    with np.errstate(all="ignore"):
        return evaluate(outputs, feeds, float_dtype="float64")


def theirs(case: Case) -> list[Any]:
    """As `ours`, of PyTorch; without the derivatives that it does not implement."""
    import torch

    arrays = prepared(case.operands)[1]
    kinds = {"f": torch.float64, "i": torch.int64, "b": torch.bool}
    tensors = [torch.tensor(a, dtype=kinds[a.dtype.kind]) for a in arrays]
    floats = [t.requires_grad_() for t in tensors if t.dtype.is_floating_point]
    call = case.of(TorchFunctions(), torch.nn)
    y = _first((call.double() if case.name in LAYERS else call)(*tensors))
    results = [y]
    if y.dtype.is_floating_point and floats:
        weights = 1.0 + torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape)
        try:
            results += (first := _gradients((y * weights).sum(), floats))
            if case.name not in LAYERS:
                directions = [torch.tensor(_direction(k, tuple(g.shape))) for k, g in enumerate(first)]
                results += _gradients(
                    sum((g * v).sum() for g, v in zip(first, directions, strict=True)), floats
                )
        except (NotImplementedError, RuntimeError) as error:
            assert "not implemented" in str(error), error
    return [r.numpy(force=True) for r in results]


def _first(y: Any) -> Any:
    """Of a value and its indices the value."""
    return y[0] if isinstance(y, tuple) else y


def _gradients(y: Any, leaves: list[Any]) -> list[Any]:
    import torch

    if not y.requires_grad:
        return [torch.zeros_like(x) for x in leaves]
    found = torch.autograd.grad(y, leaves, create_graph=True, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]


def differences(case: Case) -> list[str]:
    """Where ours differ from PyTorch's."""
    try:
        want = theirs(case)
    except (AssertionError, TypeError, ValueError):
        return []  # PyTorch rejects these options
    found = ours(case)
    count = sum(a.dtype.kind == "f" for a in case.operands)
    parts = ["value", *(f"{order} {k}" for order in ("first", "second") for k in range(count))]
    out = []
    for part, a, b in zip(parts, found, want, strict=False):
        assert np.shape(a) == np.shape(b), part
        order = part.split()[0]
        if (case.name, order) in UNLIKE_TORCH or (order != "value" and older_than_change(case.name)):
            continue
        if order == "second" and older_than_second(case.name):
            continue
        finite = np.isfinite(b)
        scale = np.abs(b[finite]).max(initial=1.0)
        equal = np.isclose(a, b, rtol=1e-5, atol=1e-8 * scale, equal_nan=True)
        if order != "value":  # where the slope is infinite, or NaN in PyTorch, the number may be finite
            equal |= ~finite & (~np.isnan(a) | (order == "second"))
        out += [f"{part} at {at}: {a[tuple(at)]}, PyTorch {b[tuple(at)]}" for at in np.argwhere(~equal)[:3]]
    return out
