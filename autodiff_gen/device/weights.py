"""Weight files: .npz with the whole state, .pt with the parameters and buffers of a PyTorch state_dict."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..codegen.state_dict import check_state, given
from ..errors import DataError, ModelError, ShapeError, ToolError, listed, pip_install, shortened
from ..ir.types import planned
from ..owned_files import write_file
from ..reading.npz import npz_of, read_npz
from ..reading.torch_state import read_torch_state

Array = NDArray[Any]
STEPS = "_steps"  # the step count in a .npz
TORCH = (".pt", ".pth")
WEIGHTS = ("parameter", "buffer")  # roles of states


def check_suffix(path: Path) -> None:
    """Raises DataError for a file that is neither .npz, .pt nor .pth."""
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
        file.write(npz_of({STEPS: np.int64(steps), **state}))
    else:
        torch = _torch(path)
        roles = dict.fromkeys(program.frozen, "parameter") | {s.name: s.role for s in program.slots}
        own = {n: torch.from_numpy(a.copy()) for n, a in state.items() if roles[n] in WEIGHTS}
        own |= {alias: own[n] for alias, n in program.tied.items()}
        torch.save(own, file)
    write_file(path, file.getvalue(), force)
    return len(own)


def read_weights(path: Path) -> tuple[dict[str, Array], int | None]:
    """Arrays by name, and the step count if the file has one. Raises DataError, also for a number that is not
    finite."""
    check_suffix(path)
    if not path.exists():
        raise DataError(f"{path}: no such file")
    state = read_torch_state(path, DataError) if path.suffix in TORCH else read_npz(path, DataError)
    steps = state.pop(STEPS, None) if path.suffix not in TORCH else None
    for name, array in state.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            index = [int(i) for i in np.argwhere(~np.isfinite(array))[0]]
            raise DataError(
                f"{path}: {shortened(name)}{index if index else ''} is {array[tuple(index)]}, no finite number; "
                "use an earlier file, or train again"
            )
    if steps is None:
        return state, None
    if steps.shape or steps.dtype.kind not in "iu" or not 0 <= steps < 1 << 32:
        got = steps if not steps.shape else f"{steps.dtype}{list(steps.shape)}"
        raise DataError(f"{path}: {STEPS} must be a number of steps, got {got}; remove it, or run pull again")
    return state, int(steps)


def weights_for(
    program: Program, path: Path, partial: bool = False
) -> tuple[dict[str, Array], int | None, str]:
    """The arrays of a file that a program takes, the step count if the file has one, and a text about left-out arrays.
    `partial`: take the arrays that match, without the step count; the text names the other arrays of the file and of
    the program. Otherwise raises DataError for arrays that the program does not take."""
    state, steps = read_weights(path)
    left_out = ""
    if partial:
        state, left_out = matching_arrays(program, path, state)
    try:
        check_state(program, "weights", state, not partial)
        for slot in program.slots:
            if slot.name in state:
                array = state[slot.name]
                if slot.type.dtype.kind == "f" and array.dtype.kind != "f":
                    raise ShapeError(f"{slot.name} is {slot.state.logical}, got an array of {array.dtype}")
                with np.errstate(over="ignore"):  # reported below
                    taken = given(slot, "weights", array)
                if not np.isfinite(taken).all():
                    raise ShapeError(f"{slot.name} has numbers above the range of {slot.type.dtype}")
    except (ModelError, ShapeError) as error:
        raise DataError(f"{path}: {error}") from None
    return state, None if partial else steps, left_out


def matching_arrays(program: Program, path: Path, state: Mapping[str, Array]) -> tuple[dict[str, Array], str]:
    """The parameters and buffers of `state`, read from `path`, that a program has with the same name and shape, and a
    text that names the other arrays of both. Frozen parameters, which are constants of the program, are included
    whatever their shape. Raises DataError if no array matches."""
    named = {program.tied.get(name, name): array for name, array in state.items()}
    slots = {s.name: tuple(planned(s.state.logical.shape)) for s in program.slots if s.role in WEIGHTS}
    chosen = {n: a for n, a in named.items() if n in program.frozen or slots.get(n) == a.shape}
    if not chosen.keys() & slots.keys():
        raise DataError(f"{path}: no array has the name and the shape of a parameter of {program.name}")
    roles = {s.name: s.role for s in program.slots}
    others = [n for n in named if n not in chosen and roles.get(n) != "optimizer"]
    others = [n for n in others if n.rpartition(".")[0] not in named]  # no optimizer's state of an array
    kept = [n for n in slots if n not in chosen]
    parts = {"not sent": others, "unchanged on the board": kept}
    return chosen, "".join(f"; {what}: {listed(names)}" for what, names in parts.items() if names)


def _torch(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise ToolError(
            f"{path}: .pt needs PyTorch, which is not installed; take a .npz, or run: {pip_install('torch')}"
        ) from None
    return torch
