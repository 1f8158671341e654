"""The geometry of convolutions and pooling: constant structs at file scope, each once, named after its layer, or
after its extents if several layers have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from ..ir.identifiers import Scope
from ..ir.kernel_call import KernelCall
from ..kernels.contract import CONTRACT, STRUCTS, KernelParam
from ..lowering.c import c_ast as c
from ..lowering.phases import Phases, title
from ..lowering.plan import EntryPlan, PlannedStep

Geometry: TypeAlias = tuple[str, tuple[tuple[str, int], ...]]  # the struct, and its fields with their values


def struct_of(call: KernelCall) -> KernelParam | None:
    """The parameter of a call that points to its geometry."""
    return next((p for p in CONTRACT[call.kernel].params if p.struct), None)


def geometry_of(call: KernelCall, struct: str) -> Geometry:
    return struct, tuple((k, call.shape[k]) for k in STRUCTS[struct])


def table(geometry: Geometry, name: str) -> c.Table:
    struct, fields = geometry
    return c.Table(f"ag_{struct}", name, fields)


def geometry_names(plans: Iterable[EntryPlan], taken: Iterable[str]) -> Mapping[Geometry, str]:
    """A name for each geometry that the plans' calls need; `taken` are names that are known everywhere."""
    users: dict[Geometry, dict[str, str]] = {}  # layers, and the kernel that each calls first
    for plan in plans:
        phases: Phases | None = None
        for step in plan.steps:
            for call in _calls(step):
                struct = struct_of(call)
                if struct is not None and struct.struct:
                    phases = phases or Phases(plan)
                    of_layers = users.setdefault(geometry_of(call, struct.struct), {})
                    of_layers.setdefault(phases.layer(step), call.kernel)
    scope = Scope(taken)
    return {geometry: scope.fresh(_wish(geometry, of_layers)) for geometry, of_layers in users.items()}


def _wish(geometry: Geometry, of_layers: Mapping[str, str]) -> str:
    """`conv1_shape`, `conv1_dx_shape`, `conv1_max_pool2d_shape`; a geometry of several layers is named after its
    extents: `conv2d_3x3_8x8x16_to_4x4x32`."""
    if len(of_layers) > 1:
        sizes = dict(geometry[1])
        window, image, result = (
            "x".join(str(sizes[k]) for k in names if k in sizes)
            for names in (("kh", "kw"), ("h", "w", "c"), ("oh", "ow", "o"))
        )
        return f"{geometry[0].removesuffix('_shape')}_{window}_{image}_to_{result}"
    ((layer, kernel),) = of_layers.items()
    words = [title(layer)] if layer else []
    if not layer or "pool2d" in kernel:
        words.append(kernel.rpartition("_")[0])
    elif "_dx" in kernel:
        words.append("dx")
    return "_".join([*words, "shape"])


def _calls(step: PlannedStep) -> Iterator[KernelCall]:
    for call, _ in step.calls.values():
        yield call
    for part in step.inner.parts if step.inner is not None else ():
        for inner in part.plan.steps:
            yield from _calls(inner)
