"""Changes of buffers and parameters in a forward pass of PyTorch that cannot be imported: one line each."""

import pytest
import torch
from module_training import BATCH, Changing
from torch.nn import functional as F

import autodiff_gen as ag

pytestmark = [pytest.mark.torch, pytest.mark.cc]


def assigned(m, x):
    m.kept = x.mean(1)
    return m.net(x)


def emptied(m, x):
    m.kept = None
    return m.net(x)


def made(m, x):
    m.new = m.net(x).detach()
    return m.new


def following(m, x):
    m.kept = m.net.weight.detach()
    return m.net(x) - x @ m.kept.T


def shared(m, x):
    m.kept = m.kept + 1
    return m.net(x) * m.other[0]


def with_other(change, other):
    """A module that has one more buffer, or tensor, of its buffer."""
    module = Changing(change)
    if other is None:
        module.register_buffer("new", None)
    else:
        module.register_buffer("other", module.kept) if other is shared else setattr(
            module, "other", other(module.kept)
        )
    return module


def first_changed(m, x):
    m.other.detach()[:2] = x[0, :2].detach()
    return m.net(x) * m.kept[0]


def first_in_a_list(m, x):
    torch._foreach_add_([m.other], 1.0)
    return m.net(x) * m.kept[0]


def first_as_statistics(m, x):
    return F.batch_norm(m.net(x), m.other, torch.ones(3), training=True) * m.kept[0]


def fused(m, x):
    torch._fused_sgd_(
        [m.kept],
        [x[0]],
        [],
        weight_decay=0.0,
        momentum=0.0,
        lr=0.1,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=True,
    )
    return m.net(x) * m.kept[0]


def read_as_integers(m, x):
    return m.net(x) * (m.other > 0).sum()


def clipped(m, x):
    m.net.weight.data.clamp_(-0.1, 0.1)
    return m.net(x)


def flagged(m, x):
    m.kept.fill_(True)
    return m.net(x)


def chosen(m, x):
    y = m.net(x[:, m.kept < 2].sum(1, keepdim=True) * x)
    m.kept.add_(1)
    return y


PART_CHANGED = (
    r"shows a part of 'kept' is changed in place \(test_torch_states_rejected.py:\d+\); change that part of 'kept' "
    "itself"
)
REJECTED = {
    "a trained weight": (
        lambda: Changing(clipped),
        "changes 'net.weight' in place, which the optimizer trains; compute with a new tensor of it, or",
    ),
    "a mask": (
        lambda: Changing(flagged, torch.tensor(False)),
        "changes 'kept' in place, which is a mask; keep integers in its place",
    ),
    "a state of another shape": (
        lambda: Changing(assigned),
        r"forward assigns 'kept' a tensor of another shape or dtype, float32\[4\] instead of float32\[6\]; keep",
    ),
    "a state without tensor": (
        lambda: Changing(emptied),
        "forward assigns 'kept' no tensor; keep a buffer, and assign zeros in place of None",
    ),
    "a state that is none before": (
        lambda: with_other(made, None),
        "forward assigns 'new', which is no tensor before; give it a tensor of its shape in __init__",
    ),
    "a state in the memory of a weight": (
        lambda: Changing(following, torch.zeros(3, 6)),
        r"forward assigns 'kept' the memory of 'net.weight', with which it would change; assign a clone\(\)",
    ),
    "a state of two names": (
        lambda: with_other(shared, shared),
        "forward assigns 'kept', and 'kept' and 'other' are one tensor; change it in place by copy_",
    ),
    "a part of a state by another tensor": (
        lambda: with_other(first_changed, lambda kept: kept[:4]),
        PART_CHANGED,
    ),
    "a part of a state in a list": (
        lambda: with_other(first_in_a_list, lambda kept: kept[:4]),
        PART_CHANGED,
    ),
    "a part of a state as statistics": (
        lambda: with_other(first_as_statistics, lambda kept: kept[:3]),
        PART_CHANGED,
    ),
    "an operator of optimizers": (lambda: Changing(fused), "aten._fused_sgd_ has no counterpart"),
    "a state as another dtype": (
        lambda: with_other(read_as_integers, lambda kept: kept.view(torch.int32)),
        r"shows the memory of 'kept' as torch.int32 \(test_torch_states_rejected.py:\d+\); compute it",
    ),
    "a choice by a state": (
        lambda: Changing(chosen),
        "masks or control flow depend on 'kept', which it changes; use torch.where",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_states_that_cannot_be_imported_are_one_line(name):
    make, message = REJECTED[name]
    with pytest.raises(ag.AutodiffError, match=message) as error:
        ag.from_torch(make(), (BATCH, 6))
    assert "\n" not in str(error.value)
