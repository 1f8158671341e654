"""What PyTorch changed among the versions that are supported; this project follows the newer ones."""

from __future__ import annotations

import functools

CLAMP = (
    2,
    14,
)  # clamp: the gradient is 0 at a number, and divided among input and limit at a tensor; before: 1

# Rows, functions and layers of the tests by their names, and the first version whose gradients are ours.
CHANGED: dict[str, tuple[int, int]] = dict.fromkeys(
    (
        *("clamp", "clamp_at_the_limits", "clamp_to_tensors", "clamp_min_tensor", "clamp_max_tensor"),
        *("clamp_to_a_tensor_and_a_number", "clamp_to_a_number_and_a_tensor", "clamp_to_one_tensor"),
        *("cosine_embedding_loss", "CosineEmbeddingLoss", "cosine_embedding_loss_zeros"),
        *("hinge_embedding_loss", "HingeEmbeddingLoss", "hinge_embedding_loss_kink"),
        *("margin_ranking_loss", "MarginRankingLoss", "margin_ranking_loss_kink"),
        *("triplet_margin_loss", "TripletMarginLoss"),
        *("triplet_margin_with_distance_loss", "TripletMarginWithDistanceLoss"),
    ),
    CLAMP,
)

# Functions whose second derivatives differ in 2.9: the one for |x| is not 0 there.
SECOND: dict[str, tuple[int, int]] = dict.fromkeys(
    ("abs", "l1_loss", "norm", "pairwise_distance", "smooth_l1_loss"), (2, 10)
)
CHANGED["atan2_at_0"] = (2, 10)  # 2.9 has NaN there

# Networks and programs of the tests, and the first version that has the features they use, or exports them.
NEEDED = {
    "without bias": (2, 10),  # of a BatchNorm
    "vmap": (2, 9),
    "spectra of silence": (2, 9),  # numbers that are complex
    "Fourier operator": (2, 7),  # parts of spectra are assigned
}

# Recurrent layers whose last states 2.9 gives an axis too many as programs, which it does not as modules.
STATES = dict.fromkeys(("two layers, both directions", "projected"), (2, 10))


@functools.cache
def installed() -> tuple[int, ...]:
    """The version of the PyTorch that the tests compare with."""
    import torch

    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def older_than_change(name: str) -> bool:
    """Whether the gradients of a row cannot be compared with the installed PyTorch."""
    return name in CHANGED and installed() < CHANGED[name]


def older_than_second(name: str) -> bool:
    """Whether the second derivatives of a function cannot be compared with the installed PyTorch."""
    return name in SECOND and installed() < SECOND[name]


def older_than_needed(name: str) -> bool:
    """Whether the installed PyTorch lacks what this network uses, or does not export it."""
    return name in NEEDED and installed() < NEEDED[name]


def older_than_states(name: str) -> bool:
    """Whether the installed PyTorch has last states of this recurrent layer in another shape."""
    return name in STATES and installed() < STATES[name]
