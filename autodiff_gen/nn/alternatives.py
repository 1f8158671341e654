"""Names of torch.nn that are not here, and what to use in their place."""

from __future__ import annotations

_DEVICE = "leave it out: the board is chosen when the model is built"
_F32 = "parameters are f32; quant.quantize makes integers of a trained network"
_HOOK = "compute in forward what the hook would"

# Methods of Module.
MODULE = {
    **dict.fromkeys(("cpu", "cuda", "ipu", "mtia", "xpu", "to", "to_empty", "share_memory"), _DEVICE),
    **dict.fromkeys(("bfloat16", "double", "float", "half", "type"), _F32),
    **dict.fromkeys(
        (
            "register_backward_hook",
            "register_forward_hook",
            "register_forward_pre_hook",
            "register_full_backward_hook",
            "register_full_backward_pre_hook",
        ),
        _HOOK,
    ),
    "compile": "leave it out: the model is compiled to C",
    "zero_grad": "leave it out: each training step computes its own gradients",
}
