"""What torch.Tensor can do beside its operators, as methods of graph values: x.relu() is F.relu(x)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .dtypes import Dim, Size, product


class _Method:
    """The function of `functional` with the attribute's name, its first argument the value.

    gathers: its second argument may be written without parentheses, as in x.permute(1, 0).
    """

    def __init__(self, gathers: bool = False, function: str | None = None) -> None:
        self.gathers, self.function = gathers, function

    def __set_name__(self, owner: type, name: str) -> None:
        self.function = self.function or name

    def __get__(self, value: Any, owner: type) -> Callable[..., Any]:
        from . import functional

        assert self.function is not None
        f: Callable[..., Any] = getattr(functional, self.function)
        if value is None:
            return f
        if not self.gathers:
            return functools.partial(f, value)

        @functools.wraps(f)
        def gathered(*numbers: Any, **options: Any) -> Any:
            one = len(numbers) == 1 and not isinstance(numbers[0], int | Dim)
            return f(value, *(numbers if one or not numbers else (numbers,)), **options)

        return gathered


class Methods:
    """Base of Value."""

    __slots__ = ()

    abs = _Method()
    add = _Method()
    amax = _Method()
    amin = _Method()
    argmax = _Method()
    argmin = _Method()
    bmm = _Method()
    broadcast_to = _Method()
    chunk = _Method()
    clamp = _Method()
    cos = _Method()
    cumsum = _Method()
    detach = _Method()
    div = _Method()
    dot = _Method()
    eq = _Method()
    erf = _Method()
    exp = _Method()
    expand = _Method(gathers=True)
    expm1 = _Method()
    flatten = _Method()
    flip = _Method(gathers=True)
    floor = _Method()
    gather = _Method()
    ge = _Method()
    gt = _Method()
    index_add = _Method()
    index_select = _Method()
    le = _Method()
    log = _Method()
    log1p = _Method()
    log_softmax = _Method()
    logical_and = _Method()
    logical_not = _Method()
    logical_or = _Method()
    logsumexp = _Method()
    lt = _Method()
    masked_fill = _Method()
    matmul = _Method()
    max = _Method()
    maximum = _Method()
    mean = _Method()
    min = _Method()
    minimum = _Method()
    mm = _Method()
    mul = _Method()
    mv = _Method()
    narrow = _Method()
    ne = _Method()
    neg = _Method()
    norm = _Method()
    outer = _Method()
    permute = _Method(gathers=True)
    pow = _Method()
    prod = _Method()
    reciprocal = _Method()
    relu = _Method()
    repeat = _Method(gathers=True)
    repeat_interleave = _Method()
    reshape = _Method(gathers=True)
    roll = _Method()
    round = _Method()
    rsqrt = _Method()
    scatter_add = _Method()
    select = _Method()
    sigmoid = _Method()
    sign = _Method()
    sin = _Method()
    softmax = _Method()
    split = _Method()
    sqrt = _Method()
    square = _Method()
    squeeze = _Method()
    std = _Method()
    sub = _Method()
    sum = _Method()
    take_along_dim = _Method()
    tanh = _Method()
    tile = _Method(gathers=True)
    to = _Method()
    transpose = _Method()
    tril = _Method()
    triu = _Method()
    unbind = _Method()
    unflatten = _Method()
    unsqueeze = _Method()
    var = _Method()
    view = _Method(gathers=True, function="reshape")

    shape: Any

    def contiguous(self) -> Any:
        """The value itself: where elements lie is the compiler's business."""
        return self

    def dim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def numel(self) -> Size:
        """The number of elements."""
        return product(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one extent of it; x.size(0) is the batch's, which a shape may hold."""
        return self.shape if dim is None else self.shape[dim]
