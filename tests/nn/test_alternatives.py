"""Every name of torch.nn, torch.nn.functional, torch.nn.init and torch.optim is ours, or an error names what to use."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

import autodiff_gen as ag
from autodiff_gen import functional, nn, optim
from autodiff_gen.errors import ModelError

# Helpers of PyTorch's own modules.
NOT_FOR_USERS = {
    "Optimizer",
    *("assert_int_or_pair", "boolean_dispatch", "handle_torch_function"),
    *("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"),
}


def names_of(module: Any) -> list[str]:
    """The layers, functions, optimizers and schedules of a module of PyTorch."""
    import torch

    bases = torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler
    found = []
    for name, member in vars(module).items():
        if inspect.isclass(member):
            wanted = issubclass(member, bases)
        else:
            wanted = (
                module is torch.nn.functional and callable(member) and type(member).__module__ != "typing"
            )
        if wanted and not name.startswith("_") and name not in NOT_FOR_USERS:
            found.append(name)
    return found


@pytest.mark.torch
@pytest.mark.parametrize("ours, path", [
    (nn, "nn"), (functional, "nn.functional"), (optim, "optim"), (optim.lr_scheduler, "optim.lr_scheduler"),
])  # fmt: skip
def test_every_name_of_torch_is_known(ours: Any, path: str) -> None:
    import torch

    theirs = torch
    for part in path.split("."):
        theirs = getattr(theirs, part)
    names = names_of(theirs)
    assert len(names) > 10
    unknown = []
    for name in names:
        try:
            getattr(ours, name)
        except ModelError as error:
            assert "\n" not in str(error) and f"{name} is not supported; " in str(error)
        except AttributeError:
            unknown.append(name)
    assert unknown == []


def test_alternatives_are_of_names_that_are_missing() -> None:
    from autodiff_gen.functional.alternatives import ALTERNATIVES as F_NAMES
    from autodiff_gen.nn.alternatives import ALTERNATIVES as NN_NAMES
    from autodiff_gen.nn.alternatives import MODULE
    from autodiff_gen.optim.alternatives import ALTERNATIVES as OPTIM_NAMES
    from autodiff_gen.optim.alternatives import SCHEDULES

    for module, names in ((functional, F_NAMES), (nn, NN_NAMES), (optim, OPTIM_NAMES)):
        assert not set(names) & set(module.__all__)
    assert not set(SCHEDULES) & set(vars(optim.lr_scheduler))
    assert not [name for name in MODULE if hasattr(type(nn.ReLU()), name)]


@pytest.mark.parametrize(
    "module, name, message",
    [
        (
            nn,
            "Conv3d",
            r"^nn.Conv3d is not supported; images have two axes: use nn.Conv2d on \[N, C \* D, H, W\]",
        ),
        (functional, "upsample", "^functional.upsample is not supported; use F.interpolate$"),
        (optim, "LBFGS", "^optim.LBFGS is not supported; .* use optim.Adam$"),
        (
            optim.lr_scheduler,
            "ReduceLROnPlateau",
            "^lr_scheduler.ReduceLROnPlateau is not supported; give the learning",
        ),
        (
            ag.Input("x", (2,)),
            "item",
            "^a graph value.item is not supported; values are known when the model runs; ",
        ),
        (ag.Input("x", (2,)), "add_", "^a graph value.add_ is not supported; use F.add: buffer assignment"),
        (ag.Input("x", (2,)), "summ", "^a graph value has no 'summ'; did you mean 'sum'[?]$"),
        (
            optim.SGD(lr=0.1),
            "zero_grad",
            "^optim.SGD.zero_grad is not supported; leave it out: train_step computes",
        ),
        (optim.SGD(lr=0.1), "other", "^optim.SGD has no 'other'; docs"),
        (
            optim.lr_scheduler.StepLR(3),
            "step",
            "^lr_scheduler.StepLR.step is not supported; leave it out: train_step",
        ),
        (nn, "Liner", "^nn has no 'Liner'; did you mean 'Linear'[?]$"),
        (functional, "abcdefgh", "^functional has no 'abcdefgh'; docs/operations.md lists what there is$"),
        (optim, "AdmW", "^optim has no 'AdmW'; did you mean 'AdamW'[?]$"),
        (optim.lr_scheduler, "StpLR", "^lr_scheduler has no 'StpLR'; did you mean 'StepLR'[?]$"),
    ],
)
def test_the_error_names_the_nearest_alternative(module: Any, name: str, message: str) -> None:
    with pytest.raises((ModelError, AttributeError), match=message):
        getattr(module, name)


def test_an_import_says_it_too() -> None:
    """`from autodiff_gen.nn import Conv3d`: Python would replace an AttributeError by its own message."""
    done = subprocess.run(
        [sys.executable, "-c", "from autodiff_gen.nn import Conv3d"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ModelError: nn.Conv3d is not supported; images have two axes" in done.stderr


def test_the_modules_behave_as_modules() -> None:
    for module in (nn, functional, optim, optim.lr_scheduler):
        assert not hasattr(module, "__wrapped__") and not hasattr(module, "not_a_name")
        assert inspect.getdoc(module)
