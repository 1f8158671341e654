"""Names of torch.optim that are not here, and what to use in their place."""

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
SCHEDULES = {
    "ChainedScheduler": "use LambdaLR with the product of the factors",
    "MultiplicativeLR": "use LambdaLR, or ExponentialLR",
    "ReduceLROnPlateau": "give the learning rate to each training step: train_step(..., lr=...)",
}
