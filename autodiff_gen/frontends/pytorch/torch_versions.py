"""Differences among the versions of PyTorch that export modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...errors import ModelError
from .hook_names import caller
from .running_statistics import UPDATING

OLDEST = (2, 4)


def version_of(torch: Any) -> tuple[int, ...]:
    return tuple(map(int, str(torch.__version__).split(".")[:2]))


def free_axis(torch: Any) -> Any:
    """An axis of any size, for dynamic_shapes. PyTorch 2.4 requires its limits."""
    dim = torch.export.Dim
    return dim.AUTO if hasattr(dim, "AUTO") else dim("batch", max=1024)


def decompositions(torch: Any) -> Any:
    """The decompositions of PyTorch: functions that compute operators by other operators."""
    return getattr(torch.export, "default_decompositions", torch._decomp.core_aten_decompositions)()


def keeps_layers(torch: Any) -> bool:
    """Whether a decomposition leaves recurrent layers as they are; before 2.6 it may run their steps."""
    return version_of(torch) > (2, 5)


def run_decompositions(
    torch: Any, program: Any, table: Mapping[Any, Any], is_known: Callable[[Any], bool]
) -> Any:
    """Decompose the operators of this table. PyTorch 2.5 needs a list of the operators to keep: the known ones. PyTorch
    2.4 keeps none."""
    if version_of(torch) != (2, 5):
        return program.run_decompositions(dict(table))
    functional = torch._subclasses.functional_tensor.FunctionalTensor
    without = {*table, *functional.maybe_aliasing_or_mutating_ops, *functional.metadata_fns}

    def is_composite(op: Any) -> bool:
        aliases = op._schema.is_mutable or any(a.alias_info for a in op._schema.arguments)
        key = torch._C.DispatchKey.CompositeImplicitAutograd
        return not aliases and bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key))

    called = {n.target for n in program.graph.nodes if isinstance(n.target, torch._ops.OpOverload)}
    return program.run_decompositions(
        dict(table), tuple(op for op in called - without if is_known(op) and is_composite(op))
    )


def exporter(torch: Any) -> Any:
    """The function that exports training operators. `export` of PyTorch 2.5 exports inference operators."""
    return _exported_for_training if version_of(torch) == (2, 5) else torch.export.export


def _exported_for_training(module: Any, *arguments: Any, **options: Any) -> Any:
    """PyTorch 2.5 records torch.no_grad() as calls that it cannot save; later versions record subgraphs. It also drops
    calls that only update running statistics."""
    import torch
    from torch._export.passes.replace_set_grad_with_hop_pass import replace_set_grad_with_hop_pass

    kept = torch.fx.node._side_effectful_functions
    names = (name.split(".") for name in UPDATING)
    updating = {getattr(getattr(torch.ops, space), name).default for space, name in names} - kept
    kept |= updating
    try:
        program: Any = torch.export.export_for_training(module, *arguments, **options)
    finally:
        kept -= updating
    return program._update(*replace_set_grad_with_hop_pass(program.graph_module, program.graph_signature))


@contextmanager
def modes_in_force(torch: Any, name: str) -> Iterator[None]:
    """Let torch.no_grad() have its effect while it is recorded, as in PyTorch 2.9: older versions record it only, so
    that values in it have gradients. Versions before 2.6 record no torch.autocast(): reject it, for the network
    `name`."""
    recording, autocast = torch.fx.experimental.proxy_tensor.PreDispatchTorchFunctionMode, torch.autocast
    record, enter = recording.__torch_function__, autocast.__enter__

    def record_and_set(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        recorded = record(mode, func, types, args, kwargs)
        if func is torch._C._set_grad_enabled:
            func(*args)
        return recorded

    def reject_half_precision(mode: Any) -> Any:
        if mode.device == "cpu" and mode._enabled:
            raise ModelError(
                f"{name} cannot be imported: forward computes in half precision; export the network without "
                f"torch.autocast ({caller(torch)})"
            )
        return enter(mode)

    if version_of(torch) < (2, 9):
        recording.__torch_function__ = record_and_set
    if version_of(torch) < (2, 6):
        autocast.__enter__ = reject_half_precision
    enabled = torch.is_grad_enabled()
    try:
        yield
    finally:
        recording.__torch_function__, autocast.__enter__ = record, enter
        torch._C._set_grad_enabled(enabled)
