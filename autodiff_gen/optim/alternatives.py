"""Names of torch.optim that `optim` lacks, and what to use instead."""

from __future__ import annotations

ALTERNATIVES = {
    "ASGD": "use optim.SGD with ema=optim.EMA(...)",
    "Adafactor": "use optim.AdamW, or optim.SGD, which needs no state",
    "LBFGS": "it evaluates the loss several times for each step; use optim.Adam",
    "Muon": "use optim.AdamW",
    "Rprop": "use optim.RMSprop",
    "SparseAdam": "use optim.Adam, or optim.SGD, which updates only the rows of an embedding that are used",
    "swa_utils": "use Model(ema=optim.EMA(...))",
}
_LOOP = "leave it out: train_step computes gradients, updates parameters and advances the schedule"

# Methods and attributes of PyTorch's optimizers and schedules.
METHODS = {
    **dict.fromkeys(("step", "zero_grad", "get_last_lr"), _LOOP),
    **dict.fromkeys(("add_param_group", "param_groups"), "give all groups when the optimizer is made"),
    **dict.fromkeys(("load_state_dict", "state_dict"), "the trainer's state_dict has the optimizer's state"),
}
SCHEDULES = {
    "ChainedScheduler": "use LambdaLR with the product of the factors",
    "MultiplicativeLR": "use LambdaLR, or ExponentialLR",
    "ReduceLROnPlateau": "give the learning rate to each training step: train_step(..., lr=...)",
}
