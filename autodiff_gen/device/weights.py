"""Weight files: .npz with the whole state, .pt with the parameters and buffers of a PyTorch state_dict."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..errors import AutodiffError, DataError, ToolError, pip_install
from ..ir.types import planned
from ..owned_files import write_file

Array = NDArray[Any]
STEPS = "_steps"  # the step count in a .npz
TORCH = (".pt", ".pth")
WEIGHTS = ("parameter", "buffer")  # roles of states


def check_suffix(path: Path) -> None:
    """DataError for a file that is neither .npz nor .pt."""
    if path.suffix not in (".npz", *TORCH):
        raise DataError(f"{path}: a file of weights is .npz or, for PyTorch, .pt or .pth")


def write_weights(
    path: Path, program: Program, state: Mapping[str, Array], steps: int, force: bool = False
) -> int:
    """Write a file of weights, as `write_file` does. A .pt gets parameters and buffers, by PyTorch's names; a .npz gets
    everything. Returns how many arrays were written. Raises DataError, ToolError."""
    check_suffix(path)
    file = io.BytesIO()
    if path.suffix == ".npz":
        own: dict[str, Any] = dict(state)
        np.savez(file, **{STEPS: np.int64(steps)}, **state)  # type: ignore[arg-type]
    else:
        torch = _torch(path)
        roles = dict.fromkeys(program.frozen, "parameter") | {s.name: s.role for s in program.slots}
        own = {n: torch.from_numpy(a.copy()) for n, a in state.items() if roles[n] in WEIGHTS}
        own |= {alias: own[n] for alias, n in program.tied.items()}
        torch.save(own, file)
    write_file(path, file.getvalue(), force)
    return len(own)


def read_weights(path: Path) -> tuple[dict[str, Array], int | None]:
    """Arrays by name, and the step count if the file has one. Raises DataError."""
    check_suffix(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if path.suffix == ".npz":
        state = read_npz(path)
        steps = state.pop(STEPS, None)
        if steps is None:
            return state, None
        if steps.shape or steps.dtype.kind not in "iu" or not 0 <= steps < 1 << 32:
            raise DataError(
                f"{path}: {STEPS} must be a number of steps, got {steps!r}; remove it, or run pull again"
            )
        return state, int(steps)
    torch = _torch(path)
    try:
        state_dict = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(state_dict, Mapping) or not all(hasattr(v, "detach") for v in state_dict.values()):
            raise DataError(f"{path}: not a state_dict: save model.state_dict()")
        return {str(n): v.detach().cpu().numpy() for n, v in state_dict.items()}, None
    except AutodiffError:
        raise
    except Exception as error:
        raise DataError(
            f"{path}: not a state_dict that PyTorch can read: {' '.join(str(error).split())[:200]}"
        ) from None


def shared(program: Program, path: Path, state: Mapping[str, Array]) -> tuple[dict[str, Array], str]:
    """The parameters and buffers of `state`, read from `path`, that a program has with the same name and shape, and in
    words what else either has. Frozen ones are among them: constants, which must be equal. Raises DataError if there
    are none."""
    named = {program.tied.get(name, name): array for name, array in state.items()}
    slots = {s.name: tuple(planned(s.state.logical.shape)) for s in program.slots if s.role in WEIGHTS}
    chosen = {n: a for n, a in named.items() if n in program.frozen or slots.get(n) == a.shape}
    if not chosen.keys() & slots.keys():
        raise DataError(f"{path}: no array has the name and the shape of a parameter of {program.name}")
    roles = {s.name: s.role for s in program.slots}
    others = [n for n in named if n not in chosen and roles.get(n) != "optimizer"]
    others = [n for n in others if n.rpartition(".")[0] not in named]  # without the optimizer's state of one
    kept = [n for n in slots if n not in chosen]
    parts = {"not sent": others, "unchanged on the board": kept}
    return chosen, "".join(f"; {what}: {', '.join(names)}" for what, names in parts.items() if names)


def read_npz(path: Path, what: str = "") -> dict[str, Array]:
    """The arrays of a .npz file by name. `what`: the first word of the message. Raises DataError."""
    try:
        with zipfile.ZipFile(path):  # NumPy takes any other file for a pickle
            pass
        with np.load(path, allow_pickle=False) as file:
            return {name: np.asarray(file[name]) for name in file.files}
    except Exception as error:  # of NumPy and zipfile, of many kinds
        raise DataError(f"{what}{path}: not a .npz file of arrays: {error}") from None


def _torch(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise ToolError(
            f"{path}: .pt needs PyTorch, which is not installed; take a .npz, or run: {pip_install('torch')}"
        ) from None
    return torch
