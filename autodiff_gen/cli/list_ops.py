"""The reference in Markdown: ops from their records; functions, layers, optimizers, schedules and initialisers from
their signatures. `autodiff-gen ops --markdown > docs/operations.md`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from .. import functional as F
from .. import init, nn, optim
from ..autodiff import grad
from ..errors import GraphError
from ..ir.build import apply_node, make_input
from ..ir.node import OPS, Op, topological
from ..ir.op_forms import AddedToMemory, WithEpilogue
from ..ir.op_kinds import (
    Assemble,
    Composite,
    Cond,
    Contraction,
    Elementwise,
    Extent,
    Fused,
    Iota,
    KernelOp,
    Leaf,
    Moded,
    Pick,
    Reduce,
    RowContraction,
    Scan,
    View,
)
from ..ir.strides import dense
from ..ir.types import Type, dtype

_LONGEST = 100  # characters of a PyTorch expression in the table

_HEAD = """\
# Operations

Generated from the registry and the modules by `autodiff-gen ops --markdown`; a test compares this page with them.

## Ops

The primitives of functions and of their gradients.

- *in C*: an expression (of a, b, c) is emitted in a fused loop, a reduction becomes the inner loop of one, a view
  costs nothing, everything else calls a kernel of the board's backends.
- *gradient*: whether the op has one.
- *twice*: whether the gradient can be differentiated again; "linear" if it does not depend on the operands.
- *in PyTorch*: the expression that tests compare the op with; a long one is in the op's record.
"""


def markdown() -> str:
    """The page docs/operations.md."""
    records = [op for op in OPS.values() if not isinstance(op.lower, Leaf | Fused)]
    rows = [_op_row(op) for op in sorted(records, key=lambda op: op.name)]
    parts = [_HEAD + "\n" + _table(("op", "in C", "gradient", "twice", "in PyTorch"), rows)]
    parts += [
        _section("Functions", "`functional`, as in torch and torch.nn.functional.", _functions(F)),
        _section("Layers and losses", "`nn`, as in torch.nn.", _classes(nn, nn.Module) | _functions(nn)),
        _section(
            "Optimizers",
            "`optim`, as in torch.optim; EMA as in torch.optim.swa_utils.",
            {"EMA": optim.EMA, **_classes(optim, optim.Optimizer)},
        ),
        _section(
            "Schedules",
            "`optim.lr_scheduler`, computed on the device; as in torch.optim.lr_scheduler, without the optimizer.",
            _classes(optim.lr_scheduler, optim.lr_scheduler.LRScheduler),
        ),
        _section("Initialisers", "`init`, drawn on the device; as in torch.nn.init.", _functions(init)),
        _section(
            "Initialisers in place",
            "`nn.init`, the initial values of a module's parameters; as in torch.nn.init.",
            _functions(nn.init),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


# Ops


def _op_row(op: Op) -> tuple[str, ...]:
    torch = _code(op.torch) if op.torch is not None else "-"
    if len(torch) > _LONGEST:
        torch = "in the record"
    if op.vjp is None and not op.samples:
        return _code(op.name), _in_c(op), "created by passes, after differentiation", "", torch
    return _code(op.name), _in_c(op), "yes" if op.vjp is not None else "no", _twice(op), torch


def _in_c(op: Op) -> str:
    match op.lower:
        case Elementwise(c=text):
            names = {name: name for sample in op.samples for name in sample.attrs}
            return _code(text.format(*"abc", **names))
        case Reduce():
            return "reduction"
        case View():
            return "view"
        case Assemble():
            return "a loop for each part"
        case Pick():
            return "one load"
        case Iota() | Extent():
            return "loop index" if isinstance(op.lower, Iota) else "extent at run time"
        case Contraction():
            is_finished = isinstance(op.form, WithEpilogue)
            return (
                "kernel `gemm` or `gemv` with an epilogue"
                if is_finished
                else "kernel `gemm`, `gemv` or `ger`"
            )
        case RowContraction(call=None):
            return "kernel `gemv`, row by row in a loop"
        case RowContraction():
            return "a kernel, some rows at a time in a loop"
        case Composite():
            return "ops that it is expanded into"
        case Moded():
            return "nothing: resolved by the mode before"
        case KernelOp() if isinstance(op.form, WithEpilogue):
            return f"as `{op.form.of}`, with an epilogue"
        case KernelOp() if isinstance(op.form, AddedToMemory) and op.form.of:
            return f"as `{op.form.of}`, added to memory"
        case Scan() | Cond():
            return (
                "`for` with its own steps as the body"
                if isinstance(op.lower, Scan)
                else "`if` with its own steps in both branches"
            )
        case KernelOp():
            return "kernel " + ", ".join(_code(k) for k in _kernels(op))
    return type(op.lower).__name__.lower()


def _kernels(op: Op) -> list[str]:
    """The kernels that the op's samples call."""
    assert isinstance(op.lower, KernelOp)
    names: dict[str, None] = {}
    for k in range(len(op.samples)):
        node = _applied(op, k)
        layouts = [dense(v.type.shape) for v in node.operands]
        names[op.lower.choose(layouts, [r.type for r in node.results], node.attrs).kernel] = None
    return list(names)


def _applied(op: Op, k: int) -> Any:
    """The op applied to inputs of its sample k."""
    sample = op.samples[k]
    types = [Type(dtype(sample.dtypes.get(i, "f32")), tuple(s)) for i, s in enumerate(sample.inputs)]
    return apply_node(op.name, *(make_input("abcdef"[i], t) for i, t in enumerate(types)), **sample.attrs)


def _twice(op: Op) -> str:
    """Whether the gradient can be differentiated: "yes", "linear" if it does not depend on the operands, or "no"."""
    if isinstance(op.lower, Scan | Cond):
        return "yes"  # their gradients are scans and conds
    if op.vjp is None or not op.samples:
        return "-"
    node = _applied(op, 0)
    xs = [v for v in node.operands if v.dtype.kind == "f"]
    dys = [make_input(f"dy{i}", r.type) for i, r in enumerate(node.results) if r.dtype.kind == "f"]
    if not xs or not dys:
        return "no"  # of quantised tensors
    outs = [r for r in node.results if r.dtype.kind == "f"]
    terms = [F.sum(out * dy) for out, dy in zip(outs, dys, strict=True)]
    try:
        first = grad(sum(terms[1:], terms[0]), xs)
        grad(sum((F.sum(F.square(g)) for g in first[1:]), F.sum(F.square(first[0]))), [*xs, *dys])
    except GraphError:
        return "no"
    reads = set(topological(first))
    return "yes" if any(x.node in reads for x in xs) else "linear"


# Modules


def _section(title: str, intro: str, members: dict[str, Callable[..., Any]]) -> str:
    rows = [
        (_code(name + _signature(member)), _summary(member), ", ".join(map(_code, _unsupported(member))))
        for name, member in sorted(members.items(), key=lambda item: item[0].lower())
    ]
    return f"## {title}\n\n{intro}\n\n" + _table((title.split(" ")[0].lower(), "", "rejected"), rows)


def _functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    names = getattr(module, "__all__", None) or [
        k for k, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == module.__name__
    ]
    hidden = {"torch_lacks", "initialiser"}
    members = {k: getattr(module, k) for k in names if not k.startswith("_") and k not in hidden}
    return {k: v for k, v in members.items() if not inspect.isclass(v)}


def _classes(module: ModuleType, base: type) -> dict[str, Callable[..., Any]]:
    names = getattr(module, "__all__", None) or list(vars(module))
    members = {k: getattr(module, k) for k in names}
    return {k: v for k, v in members.items() if inspect.isclass(v) and issubclass(v, base) and v is not base}


def _signature(member: Callable[..., Any]) -> str:
    """Arguments and defaults, without types."""
    signature = inspect.signature(member.__init__ if inspect.isclass(member) else member)
    bare = [
        p.replace(annotation=inspect.Parameter.empty)
        for name, p in signature.parameters.items()
        if name != "self"
    ]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def _summary(member: Callable[..., Any]) -> str:
    """The first sentence of the docstring."""
    own = member.__dict__.get("__doc__") if inspect.isclass(member) else member.__doc__
    text = " ".join((own or "").split())
    return re.split(r"(?<=[^ ]\.) (?=[A-Z`])", text)[0].replace("|", "\\|")


def _unsupported(member: Callable[..., Any]) -> tuple[str, ...]:
    """PyTorch's arguments that are rejected unless they have their default values."""
    function = member.__init__ if inspect.isclass(member) else member
    return tuple(getattr(function, "unsupported", ()))
