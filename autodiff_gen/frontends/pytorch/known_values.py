"""Tensors whose values follow from constants while a module is exported: as masks they become integer indices, and
Python may read them.

    similar[~torch.eye(8, dtype=torch.bool)]    ->    similar[rows, columns]

torch.export itself records shapes only, so that the number of chosen elements would depend on data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

LARGEST = 1 << 22  # elements of a tensor whose value is kept: a limit of memory
CREATIONS = "arange eye full linspace ones scalar_tensor tensor tril_indices triu_indices zeros"
CREATIONS += " full_like ones_like zeros_like new_full new_ones new_zeros new_tensor"
OF_SHAPES = {"full_like", "ones_like", "zeros_like", "new_full", "new_ones", "new_zeros", "new_tensor"}
# Words in the names of functions that draw random numbers, or whose result is no function of the arguments.
NOT_KNOWN = (
    "rand",
    "normal",
    "bernoulli",
    "multinomial",
    "dropout",
    "empty",
    "exponential",
    "uniform",
    "geometric",
)
READS = ("__bool__", "__float__", "__index__", "__int__", "item", "tolist")


class _Known(NamedTuple):
    """A tensor of the export, its value, and the buffers of the module that the value depends on."""

    tensor: Any
    value: Any
    buffers: frozenset[str]


@contextmanager
def known_values(torch: Any, module: Any) -> Iterator[set[str]]:
    """Use known values while the module is exported. Gives the set of buffers on whose values the export depends: no
    call may change them."""
    depended: set[str] = set()

    def held() -> Iterator[tuple[str, Any]]:
        """The buffers of the module, and tensors that are other attributes."""
        yield from module.named_buffers()
        for path, m in module.named_modules():
            yield from ((f"{path}.{n}", t) for n, t in vars(m).items() if isinstance(t, torch.Tensor))

    before = {n: t.clone() for n, t in held() if t.numel() <= LARGEST and not t.requires_grad}
    known: dict[int, _Known] = {}
    others: dict[int, Any] = {}  # tensors of the export whose values are not known

    def find(t: Any) -> _Known | None:
        found = known.get(id(t))
        if found is not None or id(t) in others:
            return found
        if not isinstance(t, torch._subclasses.FakeTensor):
            is_parameter = isinstance(t, torch.nn.Parameter) or t.requires_grad or t.numel() > LARGEST
            return None if is_parameter else _Known(t, t, frozenset())
        name = next((n for n, of in held() if of is t and n in before), None)
        if name is None:
            others[id(t)] = t
            return None
        known[id(t)] = _Known(t, before[name], frozenset((name,)))
        return known[id(t)]

    def value_of(t: Any) -> Any:
        found = find(t)
        if found is None:
            return None
        depended.update(found.buffers)
        return found.value

    def indices(mask: Any) -> tuple[Any, ...] | None:
        """The indices that a known mask chooses, as tensors of the export; None for other tensors."""
        if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool or mask.ndim == 0:
            return None
        value = value_of(mask)
        if value is None:
            return None
        with _outside():
            places = [i.tolist() for i in value.nonzero(as_tuple=True)]
        return tuple(torch.tensor(i, dtype=torch.int64) for i in places)

    def key_of(key: Any) -> Any:
        parts: list[Any] = []
        for k in key if isinstance(key, tuple) else (key,):
            found = indices(k)
            parts += [k] if found is None else found
        return tuple(parts)

    def masked_select(func: Any, x: Any, mask: Any) -> Any:
        if tuple(x.shape[x.ndim - mask.ndim :]) == tuple(mask.shape):
            found = indices(mask)
            return func(x, mask) if found is None else x[(..., *found)].flatten()
        same = torch.broadcast_tensors(x, mask)
        found = indices(same[1])
        return func(x, mask) if found is None else same[0][found]

    def masked_scatter(func: Any, x: Any, mask: Any, source: Any) -> Any:
        found = indices(mask)
        if found is None or mask.shape != x.shape:
            return func(x, mask, source)
        return torch.index_put(x, found, source.reshape(-1)[: len(found[0])])

    def set_items(func: Any, x: Any, key: Any, value: Any) -> Any:
        is_tensor = isinstance(value, torch.Tensor) and value.ndim > 0
        return func(x, key_of(key) if is_tensor else key, value)

    rules: dict[Any, Callable[..., Any]] = {
        torch.Tensor.__getitem__: lambda func, x, key: func(x, key_of(key)),
        torch.Tensor.__setitem__: set_items,
        torch.masked_select: masked_select,
        torch.Tensor.masked_select: masked_select,
        torch.masked_scatter: masked_scatter,
        torch.Tensor.masked_scatter: masked_scatter,
    }

    @contextmanager
    def _outside() -> Iterator[None]:
        with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad():
            yield

    def note(name: str, func: Any, args: Any, kwargs: Any, given: list[Any], made: Any) -> None:
        """Keep the value of a result that follows from known values; forget tensors that were changed to unknown
        values."""
        changes = (name.endswith("_") and not name.endswith("__")) or name == "__setitem__"
        wanted = [made] if isinstance(made, torch.Tensor) else given[:1] if changes else []
        if not wanted:
            return
        creates = name in CREATIONS.split()
        operands = [] if name in OF_SHAPES else [find(t) for t in given]
        good = (creates or bool(operands)) and None not in operands
        good = good and not any(word in name for word in NOT_KNOWN) and made is not NotImplemented
        good = good and not any(isinstance(d, torch.SymInt) for d in wanted[0].shape)
        if good and wanted[0].numel() <= LARGEST:
            values = {id(o.tensor): o.value for o in operands if o is not None}
            values |= (
                {} if operands else {id(t): torch.empty(t.shape, dtype=t.dtype, device="meta") for t in given}
            )

            def real(a: Any) -> Any:
                return values.get(id(a), a) if isinstance(a, torch.Tensor) else a

            tree = torch.utils._pytree
            try:
                with _outside():
                    moved = {**tree.tree_map(real, kwargs)}
                    if name in OF_SHAPES:
                        moved["device"] = "cpu"
                    value = func(*tree.tree_map(real, args), **moved)
            except Exception:  # the arguments have attributes that only a trace has
                good = False
            else:
                value = values[id(given[0])] if name == "__setitem__" else value
                of = frozenset().union(*(o.buffers for o in operands if o is not None))
                known[id(wanted[0])] = _Known(wanted[0], value, of)
        if not good and changes and given and find(given[0]) is not None:
            storage = (
                known[id(given[0])].value.untyped_storage().data_ptr() if id(given[0]) in known else None
            )
            for k in [k for k, v in known.items() if v.value.untyped_storage().data_ptr() == storage]:
                del known[k]

    class Known(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if torch.compiler.is_dynamo_compiling():  # as torch.cond is
                return func(*args, **kwargs)
            name = getattr(func, "__name__", "")
            given = [
                t for t in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)
            ]
            if name in READS and given and isinstance(given[0], torch._subclasses.FakeTensor):
                value = value_of(given[0])
                if value is not None:
                    with _outside():
                        return func(value)
            if name in ("nonzero", "argwhere", "where") and len(given) == 1 and len(args) == 1:
                value = value_of(given[0])
                if value is not None:
                    with _outside():
                        found = func(value, **kwargs)
                        found = [t.tolist() for t in found] if isinstance(found, tuple) else found.tolist()
                    if name == "where" or kwargs.get("as_tuple"):
                        return tuple(torch.tensor(t, dtype=torch.int64) for t in found)
                    return torch.tensor(found, dtype=torch.int64)
            made = rules[func](func, *args, **kwargs) if func in rules else func(*args, **kwargs)
            note(name, func, args, kwargs, given, made)
            return made

    with Known():
        yield depended
