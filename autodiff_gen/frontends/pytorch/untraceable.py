"""Reject calls in `forward` that torch.export cannot trace, with the line of the call. Otherwise torch.export would
fail later without a reason, or record the results as constants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import ModelError
from .hook_names import caller
from .torch_versions import version_of
from .tracing import tracing_mode

# The function that begins a transform of torch.func -> the first version that traces it, and the reason for messages.
TRANSFORMS: dict[tuple[str, str], tuple[tuple[int, int] | None, str]] = {
    ("eager_transforms", "grad_increment_nesting"): (
        None,
        "it cannot trace torch.func; use torch.autograd.grad(y, x, create_graph=True)",
    ),
    ("eager_transforms", "jvp_increment_nesting"): (
        (2, 10),
        "PyTorch {} cannot trace torch.func.jvp; use torch.autograd.grad, or install a later version",
    ),
    ("vmap", "vmap_increment_nesting"): (
        (2, 9),
        "PyTorch {} cannot trace torch.vmap; compute with tensors of all samples, or install a later version",
    ),
}
COPIED = (
    "forward calls copy.deepcopy of a {}; make the copy in __init__, or compute with detach() of its tensors"
)


@contextmanager
def rejected_calls(torch: Any, name: str) -> Iterator[None]:
    """In the block these calls raise ModelError, for the network `name`."""

    def rejecting(reason: str, original: Any = None) -> Any:
        def reject(*args: Any) -> Any:
            if original is not None and tracing_mode(torch) is None:
                return original(*args)  # of torch.export itself
            raise ModelError(f"{name} cannot be exported by torch.export: {reason} ({caller(torch)})")

        return reject

    replaced = [
        (getattr(torch._functorch, module), begin, rejecting(reason.format(torch.__version__)))
        for (module, begin), (first, reason) in TRANSFORMS.items()
        if first is None or version_of(torch) < first
    ]
    for kind in (torch.nn.Module, torch.nn.Parameter, torch.Tensor):
        original = vars(kind).get("__deepcopy__")
        replaced.append((kind, "__deepcopy__", rejecting(COPIED.format(kind.__name__.lower()), original)))
    originals = [vars(owner).get(attribute) for owner, attribute, _ in replaced]
    for owner, attribute, reject in replaced:
        setattr(owner, attribute, reject)
    try:
        yield
    finally:
        for (owner, attribute, _), original in zip(replaced, originals, strict=True):
            if original is None:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, original)
