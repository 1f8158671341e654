"""The errors of torch.export as one line for the user."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .user_lines import is_users

# Parts of messages of torch.export about control flow that depends on data.
OF_DATA = (
    "data-dependent",
    "higher order operator",
    "`operator.*` comparison",
    "Cond doesn't work",
    "target=torch.ops.aten.item.default",
)
# Parts of messages of torch.export that tell a user no reason.
NO_REASON = (
    "<weakref at",
    ".numpy() is not supported",
    "data is not allocated",
    "file an issue",
    "file a bug",
    "report",
    "github.com",
    "fake tensor",
    "INTERNAL ASSERT",
    "FakeTensor",
)
NOT_RECORDED = (
    "it does not record a tensor that forward makes; compute with functions of torch of the inputs, parameters and "
    "buffers, without .numpy(), torch.Tensor() and nn.Parameter()"
)


def reason_of(error: Exception, torch: Any) -> str:
    """The reason of an error of torch.export: its first line or a clearer one, and the user's line that caused it."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    if any("batch_sizes" in frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__)):
        first = "has packed sequences; pad them"
    elif "functorch" in text or "TensorWrapper" in text or _is_of(error, "eager_transforms"):
        first = "it cannot trace torch.func; use torch.autograd.grad(y, x, create_graph=True)"
    elif any(part in text for part in OF_DATA) or _is_of(error, "cond", "while_loop"):
        first = "control flow depends on data; use torch.where, or fix the condition before the export"
    elif any(words.lower() in first.lower() for words in NO_REASON):
        first = NOT_RECORDED
    elif "Failed serializing node" in first:
        operator = re.search(r"target=(?:torch\.ops\.)?([\w.]+)", first)
        what = operator[1] if operator else "a part of it"
        first = (
            f"PyTorch {torch.__version__} cannot save {what} with these arguments; use another operator, or "
            "try a later version"
        )
    elif "NotImplemented" in first:
        first = f"PyTorch {torch.__version__} cannot export it ({first[:100]}); try a later version"
    return f"{first[:300]}{_place(error, lines)}"


def _is_of(error: Exception, *modules: str) -> bool:
    """Whether the traceback of an error passes through one of these modules of PyTorch."""
    frames = (Path(f.filename) for f in traceback.extract_tb(error.__traceback__))
    return any(file.stem in modules and "torch" in file.parts for file in frames)


def _place(error: Exception, lines: Sequence[str]) -> str:
    """The user's file and line, of the traceback or of the message."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_users(frame.filename):
            return f" ({Path(frame.filename).name}:{frame.lineno})"
    places = [line for line in lines if line.startswith("File ") and "-packages/torch/" not in line]
    return f" ({places[-1].removeprefix('File ')})" if places else ""
