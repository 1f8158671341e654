"""Operators on lists of tensors: while a module is exported, they become one operator for each tensor.

torch._foreach_add_([a, b], [x, y], alpha=0.1)    ->    a.add_(x, alpha=0.1); b.add_(y, alpha=0.1)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .weight_aliases import forward_inside

PREFIX = "_foreach_"


@contextmanager
def each_tensor(torch: Any, module: Any) -> Iterator[None]:
    """Replace operators on lists while the module is exported."""

    class Each(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(func, "__name__", "").partition(".")[0]
            own = name.removeprefix(PREFIX)
            one = getattr(torch.Tensor, own, None) or getattr(torch, own, None)
            if own == name or one is None or torch.compiler.is_dynamo_compiling():
                return func(*args, **(kwargs or {}))
            count = len(args[0])

            def part(given: Any, k: int) -> Any:
                return given[k] if isinstance(given, list | tuple) and len(given) == count else given

            made = [
                one(*(part(a, k) for a in args), **{n: part(v, k) for n, v in (kwargs or {}).items()})
                for k in range(count)
            ]
            return None if name.endswith("_") else made

    def tracing(forward: Any, *args: Any, **kwargs: Any) -> Any:
        with Each():
            return forward(*args, **kwargs)

    with forward_inside(module, tracing):
        yield
