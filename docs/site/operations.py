"""The ops by family: how each is computed, its gradient, and the kernels that serve it, by backend."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from intro import intro

from autodiff_gen.cli.list_ops import _kernels, _op_row
from autodiff_gen.ir.node import OPS, Op
from autodiff_gen.ir.op_kinds import Fused, KernelOp, Leaf
from autodiff_gen.kernels import registry
from autodiff_gen.kernels.table import Backend, Kernel

_HEAD = "| op | in C | gradient | twice | in PyTorch |\n|---|---|---|---|---|"
_SERVED = """\
The [contract](../kernel-contract.md) defines each kernel.
A call that no row of a backend serves goes to the next backend of the list; `ref` serves every call.
"""
_KERNELS = "| kernel | backend | core | serves |\n|---|---|---|---|"


def pages(root: Path) -> dict[str, str]:
    """The pages of reference/operations."""
    backends = [registry.load_backend(root / "kernels" / n, root / "kernels") for n in registry.available()]
    families = _families(root)
    made, rows = {}, []
    for family, ops in families.items():
        if ops:
            title = family.replace("_", " ").replace(".", ": ").capitalize()
            made[f"reference/operations/{family}.md"] = _page(title, family, ops, backends)
            names = ", ".join(f"`{op.name}`" for op in sorted(ops, key=lambda op: op.name))
            rows.append(f"| [{title}]({family}.md) | {names} |")
    index = intro("operations") + "\n| family | ops |\n|---|---|\n" + "\n".join(rows) + "\n"
    return {"reference/operations/index.md": index, **made}


def _families(root: Path) -> dict[str, list[Op]]:
    """The ops by the module that registers them: it has the name, or most of the functions of the record."""
    folder = root / "autodiff_gen" / "ops"
    paths = {p.relative_to(folder).with_suffix(""): p for p in sorted(folder.rglob("[a-z]*.py"))}
    texts = {".".join(path.parts): p.read_text() for path, p in paths.items()}
    del texts["support"]
    families: dict[str, list[Op]] = {name: [] for name in texts}
    for op in OPS.values():
        parts = [getattr(record, f.name) for record in (op, op.lower) for f in fields(record)]
        homes = [
            getattr(part, "__module__", "").removeprefix("autodiff_gen.ops.")
            for part in parts
            if callable(part)
        ]
        if not isinstance(op.lower, Leaf | Fused):
            own = re.compile(rf'\bOp\(\s*"{op.name}",')
            line = re.compile(rf'^ +"{op.name}",(?: +#.*)?$|\("{op.name}",', re.MULTILINE)
            found = {k: (bool(own.search(v)), homes.count(k), bool(line.search(v))) for k, v in texts.items()}
            family = max(texts, key=found.__getitem__)
            families[family].append(op)
    return families


def _page(title: str, family: str, ops: list[Op], backends: list[Backend]) -> str:
    about = importlib.import_module(f"autodiff_gen.ops.{family}").__doc__
    rows = ["| " + " | ".join(_op_row(op)) + " |" for op in sorted(ops, key=lambda op: op.name)]
    names = sorted({k for op in ops if isinstance(op.lower, KernelOp) and op.samples for k in _kernels(op)})
    parts = [f"# {title}", " ".join((about or "").split()), "\n".join([_HEAD, *rows])]
    served = [_served(b, k) for name in names for b in backends for k in b.kernels if k.name == name]
    if served:
        parts += ["## Kernels", _SERVED, "\n".join([_KERNELS, *dict.fromkeys(served)])]
    return "\n\n".join(parts) + "\n"


def _served(backend: Backend, kernel: Kernel) -> str:
    when = " and ".join(f"`{c}`" for c in kernel.when) or "every call"
    return f"| `{kernel.name}` | {backend.name} | {_words(backend.requires) or 'any'} | {when} |"


def _words(names: Iterable[str]) -> str:
    return ", ".join(names)
