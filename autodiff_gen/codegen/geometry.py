"""The geometry of convolutions and pooling: constant structs at file scope, each once, named after its layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from ..ir.identifiers import Scope
from ..ir.kernel_call import KernelCall
from ..kernels.contract import CONTRACT, STRUCTS, Param
from ..lowering.c import c_ast as c
from ..lowering.phases import Phases, title
from ..lowering.plan import EntryPlan, Step

Geometry: TypeAlias = tuple[str, tuple[tuple[str, int], ...]]  # the struct, and its fields with their values


def struct_of(call: KernelCall) -> Param | None:
    """The parameter of a call that points to its geometry."""
    return next((p for p in CONTRACT[call.kernel].params if p.struct), None)


def geometry_of(call: KernelCall, struct: str) -> Geometry:
    return struct, tuple((k, call.shape[k]) for k in STRUCTS[struct])


def table(geometry: Geometry, name: str) -> c.Table:
    struct, fields = geometry
    return c.Table(f"ag_{struct}", name, fields)


def geometry_names(plans: Iterable[EntryPlan], taken: Iterable[str]) -> Mapping[Geometry, str]:
    """A name for each geometry that the plans' calls need; `taken` are names that are known everywhere."""
    scope, names = Scope(taken), dict[Geometry, str]()
    for plan in plans:
        first: dict[Geometry, tuple[KernelCall, Step]] = {}
        for step in plan.steps:
            for call in _calls(step):
                struct = struct_of(call)
                if struct is not None and struct.struct:
                    first.setdefault(geometry_of(call, struct.struct), (call, step))
        if first.keys() <= names.keys():
            continue
        phases = Phases(plan)
        for geometry, (call, step) in first.items():
            if geometry not in names:
                names[geometry] = scope.fresh(_wish(call.kernel, phases.layer(step)))
    return names


def _wish(kernel: str, layer: str) -> str:
    """`conv1_shape`, `conv1_dx_shape`, `conv1_max_pool2d_shape`."""
    words = [title(layer)] if layer else []
    if not layer or "pool2d" in kernel:
        words.append(kernel.rpartition("_")[0])
    elif "_dx" in kernel:
        words.append("dx")
    return "_".join([*words, "shape"])


def _calls(step: Step) -> Iterator[KernelCall]:
    for call, _ in step.calls.values():
        yield call
    for part in step.inner.parts if step.inner is not None else ():
        for inner in part.plan.steps:
            yield from _calls(inner)
