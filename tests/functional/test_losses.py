"""Every loss against torch: values and gradients in float64, and as generated C; its edges; wrong arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import Row, check_c_together, check_float64
from generated_c import host_functions
from rejections import all_rejected
from row_groups import each_row, in_groups

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.autodiff import grad
from autodiff_gen.errors import ModelError, ShapeError
from autodiff_gen.ir.interpreter import evaluate

REDUCTIONS = ("mean", "sum", "none")
WEIGHT = np.float32([0.5, 2.0, 1.25])
SIGNS = np.float32([1, -1, 1, -1])
SIGNED_TARGET = SIGNS.astype(np.int32)
SOME_IGNORED = np.int32([2, -100, 0, 1])
ALL_KINDS: dict[str, dict[str, Any]] = {
    "": {},
    "_weight": {"weight": WEIGHT},
    "_ignore": {"ignore_index": 1},
    "_both": {"weight": WEIGHT, "ignore_index": 2},
}
SMOOTH: dict[str, dict[str, Any]] = {
    "_smooth": {"label_smoothing": 0.1},
    "_smooth_all": {"label_smoothing": 1.0},
    "_smooth_weight": {"label_smoothing": 0.2, "weight": WEIGHT},
    "_smooth_both": {"label_smoothing": 0.2, "weight": WEIGHT, "ignore_index": 2},
}


def tensor(F: Any, value: Any, like: Any) -> Any:
    """An array as an argument: as it is for ours, a tensor of the dtype of `like` for torch."""
    if not isinstance(value, np.ndarray) or hasattr(F, "torch_lacks"):
        return value
    import torch

    return torch.tensor(value, dtype=like.dtype)


def row(
    name: str, loss: str, operands: list[Any], first: Callable[..., Any] | None = None, **options: Any
) -> Row:
    """A row of `loss` with options; `first` prepares the first operand."""

    def expression(F: Any, a: Any, *rest: Any) -> Any:
        given = {k: tensor(F, v, a) for k, v in options.items()}
        return getattr(F, loss)(a if first is None else first(F, a), *rest, **given)

    return f"{loss}{name}", expression, operands


def rows(
    name: str, loss: str, operands: list[Any], first: Callable[..., Any] | None = None, **options: Any
) -> list[Row]:
    return [row(f"{name}_{r}", loss, operands, first, reduction=r, **options) for r in REDUCTIONS]


LABELS = ((4,), "u8", 3)
SIGNED = ((6,), "s32", 3)
TWO_LABELS = np.array([2, 2], np.int32)
COUNTS = np.float32([[3, 0, 1], [0, 5, 2], [1, 1, 4], [0, 0, 0]])
# Differences of -2 to 2 in quarters: on both kinks of both piecewise losses, and 0.
STEPS = np.arange(-8, 9, dtype=np.float32) / 4
ZEROS = np.zeros(17, np.float32)


def log_softmax(F: Any, a: Any) -> Any:
    return F.log_softmax(a, 1)


def sigmoid(F: Any, a: Any) -> Any:
    return F.sigmoid(a)


ROWS: list[Row] = [
    *(r for k, o in ALL_KINDS.items() for r in rows(k, "nll_loss", [(4, 3), LABELS], log_softmax, **o)),
    *(r for k, o in {**ALL_KINDS, **SMOOTH}.items() for r in rows(k, "cross_entropy", [(4, 3), LABELS], **o)),
    *rows("_minus_100", "cross_entropy", [(4, 3), SOME_IGNORED]),
    *rows("_minus_100_weight", "nll_loss", [(4, 3), SOME_IGNORED], weight=WEIGHT),
    *rows("_signed", "cross_entropy", [(6, 3), SIGNED], ignore_index=0, label_smoothing=0.3),
    *rows("_images", "cross_entropy", [(2, 3, 4), ((2, 4), "u8", 3)], **SMOOTH["_smooth_both"]),
    *rows("_images", "nll_loss", [(2, 3, 2, 2), ((2, 2, 2), "s32", 3)]),
    row("_no_batch", "cross_entropy", [(3,), ((), "s32", 3)], weight=WEIGHT, label_smoothing=0.1),
    row("_large", "cross_entropy", [(4, 3), LABELS], lambda F, a: a * 1e4, label_smoothing=0.1),
    *(
        (
            f"probabilities{k}_{r}",
            lambda F, a, b, o=o, r=r: F.cross_entropy(
                a, F.softmax(b, 1), reduction=r, **{k: tensor(F, v, a) for k, v in o.items()}
            ),
            [(4, 3), (4, 3)],
        )
        for k, o in {**SMOOTH, "_weight": {"weight": WEIGHT}}.items()
        if "ignore_index" not in o
        for r in REDUCTIONS
    ),
    row("_images", "cross_entropy", [(2, 3, 4), (2, 3, 4)], weight=WEIGHT, label_smoothing=0.1),
    *rows("", "l1_loss", [(4, 3), (4, 3)]),
    row("_kinks", "l1_loss", [STEPS, ZEROS], reduction="none"),
    *(r for beta in (0.0, 0.5, 1.0) for r in rows(f"_{beta}", "smooth_l1_loss", [(4, 3), (4, 3)], beta=beta)),
    *(row(f"_kinks_{beta}", "smooth_l1_loss", [STEPS, ZEROS], beta=beta) for beta in (0.0, 0.5, 1.0)),
    *(r for delta in (0.5, 1.0) for r in rows(f"_{delta}", "huber_loss", [(4, 3), (4, 3)], delta=delta)),
    *(row(f"_kinks_{delta}", "huber_loss", [STEPS, ZEROS], delta=delta) for delta in (0.5, 1.0)),
    *rows("_weight", "binary_cross_entropy", [(4, 3), np.eye(4, 3)], sigmoid, weight=WEIGHT),
    row("_column", "binary_cross_entropy", [(4, 3), np.eye(4, 3)], sigmoid, weight=SIGNS[:, None]),
    *(
        r
        for k, o in {"": {}, "_weight": {"weight": WEIGHT}, "_pos": {"pos_weight": WEIGHT}}.items()
        for r in rows(k, "binary_cross_entropy_with_logits", [(4, 3), (4, 3)], **o)
    ),
    row("_all", "binary_cross_entropy_with_logits", [(4, 3), (4, 3)], weight=WEIGHT[:1], pos_weight=WEIGHT),
    row("_zeros", "binary_cross_entropy_with_logits", [ZEROS, STEPS], reduction="none"),
    row("_large", "binary_cross_entropy_with_logits", [STEPS, STEPS], lambda F, a: a * 100.0, reduction="none"),
    row("_no_axes", "binary_cross_entropy_with_logits", [(), ()]),
    *(
        row(f"_{r}_{logs}", "kl_div", [(4, 3), np.eye(4, 3) / 2 + 0.1], reduction=r, log_target=logs)
        for r in ("mean", "batchmean", "sum", "none")
        for logs in (False, True)
    ),
    row("_scalar", "kl_div", [(), np.array(0.5)], reduction="batchmean"),
    *(
        r
        for margin in (0.0, 0.3, -0.2)
        for r in rows(f"_{margin}", "cosine_embedding_loss", [(4, 3), (4, 3), SIGNED_TARGET], margin=margin)
    ),
    row("_floats", "cosine_embedding_loss", [(4, 3), (4, 3), SIGNS]),
    row("_no_batch", "cosine_embedding_loss", [(3,), (3,), np.array(-1, np.int32)]),
    row("_zeros", "cosine_embedding_loss", [np.zeros((4, 3), np.float32), (4, 3), SIGNS]),
    *(r for m in (1.0, 0.25) for r in rows(f"_{m}", "hinge_embedding_loss", [(4,), SIGNED_TARGET], margin=m)),
    row("_kink", "hinge_embedding_loss", [np.float32([1, 1, 0, 0]), SIGNS], reduction="none"),
    *(
        r
        for k, o in {
            "": {},
            "_margin": {"margin": 0.5, "eps": 1e-3},
            "_swap": {"swap": True},
            "_city": {"p": 1, "swap": True},
        }.items()
        for r in rows(k, "triplet_margin_loss", [(4, 3), (4, 3), (4, 3)], **o)
    ),
    row("_no_batch", "triplet_margin_loss", [(3,), (3,), (3,)]),
    *(
        r
        for k, o in {"": {}, "_margin": {"margin": 0.5, "swap": True}}.items()
        for r in rows(k, "triplet_margin_with_distance_loss", [(4, 3), (4, 3), (4, 3)], **o)
    ),
    (
        "triplet_margin_with_cosines",
        lambda F, *v: F.triplet_margin_with_distance_loss(
            *v, distance_function=lambda a, b: 1.0 - F.cosine_similarity(a, b)
        ),
        [(4, 3), (4, 3), (4, 3)],
    ),
    *(r for m in (0.0, 0.75) for r in rows(f"_{m}", "margin_ranking_loss", [(4,), (4,), SIGNS], margin=m)),
    row("_kink", "margin_ranking_loss", [SIGNS, SIGNS, SIGNS], reduction="none"),
    *(
        (
            f"soft_margin_loss_{r}",
            lambda F, a, r=r: F.soft_margin_loss(100.0 * a, tensor(F, np.sign(STEPS + 0.1), a), reduction=r),
            [STEPS],
        )
        for r in REDUCTIONS
    ),
    *(
        r
        for k, o in {"": {}, "_weight": {"weight": WEIGHT}}.items()
        for r in rows(k, "multilabel_soft_margin_loss", [(4, 3), np.eye(4, 3)], **o)
    ),
    *(
        r
        for k, o in {"": {}, "_2": {"p": 2, "margin": 0.5}, "_weight": {"weight": WEIGHT, "p": 2}}.items()
        for r in rows(k, "multi_margin_loss", [(4, 3), LABELS], **o)
    ),
    row("_no_batch", "multi_margin_loss", [(3,), ((), "s32", 3)]),
    *(
        row(f"_{k}_{full}", "gaussian_nll_loss", [(4, 3), (4, 3), v], full=full)
        for k, v in (
            ("all", np.linspace(0.1, 3, 12).reshape(4, 3)),
            ("rows", np.ones(4)),
            ("column", np.ones((4, 1))),
        )
        for full in (False, True)
    ),
    *rows("_eps", "gaussian_nll_loss", [(4, 3), (4, 3), np.eye(4, 3)], eps=0.5),
    *(
        (
            f"poisson_nll_loss_{r}_{full}",
            lambda F, a, r=r, full=full: F.poisson_nll_loss(a, tensor(F, COUNTS, a), full=full, reduction=r),
            [(4, 3)],
        )
        for r, full in (("mean", False), ("sum", True), ("none", True))
    ),
    row("_rates", "poisson_nll_loss", [(4, 3), np.eye(4, 3)], lambda F, a: F.exp(a), log_input=False, eps=0.1),
    *(
        row(f"{k}_{r}", "ctc_loss", [(6, 3, 4), labels, *lengths], lambda F, a: F.log_softmax(a, 2), reduction=r, **o)
        for k, labels, lengths, o in (
            ("", [[1, 1, 0], [2, 3, 1], [3, 0, 0]], ([6, 4, 6], [2, 3, 1]), {}),
            ("_blank", [[1, 1, 0], [2, 2, 1], [0, 0, 0]], ([6, 5, 6], [2, 0, 1]), {"blank": 3}),
            ("_too_short", [[1, 1, 1], [1, 1, 1], [1, 1, 1]], ([5, 4, 2], [3, 3, 1]), {"zero_infinity": True}),
            ("_one_label", [[1], [2], [3]], ([1, 2, 6], [1, 1, 1]), {}),
        )
        for labels, lengths in [(np.array(labels, np.int32), [np.array(v, np.int32) for v in lengths])]
        for r in REDUCTIONS
    ),
    row("_no_batch", "ctc_loss", [(6, 4), TWO_LABELS, *map(np.array, (np.int32(5), np.int32(2)))],
        lambda F, a: F.log_softmax(a, 1)),
]  # fmt: skip


@pytest.mark.torch
@in_groups(ROWS)
@each_row
def test_against_torch(row: Row) -> None:
    check_float64(row, 1e-6)  # weights and smoothing are constants in float32


@pytest.mark.cc
@pytest.mark.torch
@in_groups(ROWS)
def test_generated_c_against_torch(rows: list[Row]) -> None:
    check_c_together(rows)


@pytest.mark.torch
@pytest.mark.parametrize("float_dtype", ["float32", "float64"])
@pytest.mark.parametrize("t", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("p", [0.0, 1e-38, 1e-13, 1e-11, 1 - 2.0**-24, 1.0])
def test_binary_cross_entropy_of_certainty(p: float, t: float, float_dtype: str) -> None:
    """PyTorch's values and gradients, which are finite."""
    import torch

    x, target = ag.Input("x", ()), ag.Input("target", ())
    y = F.binary_cross_entropy(x, target)
    got = evaluate([y, grad(y, x)], {x: p, target: t}, float_dtype=float_dtype)
    tensor = torch.tensor(p, dtype=getattr(torch, float_dtype), requires_grad=True)
    want = torch.nn.functional.binary_cross_entropy(tensor, torch.tensor(t, dtype=tensor.dtype))
    want.backward()
    np.testing.assert_allclose(got, [want.item(), tensor.grad.item()], rtol=3e-6)


@pytest.mark.cc
def test_small_losses_keep_their_digits() -> None:
    """exp(-30) is lost beside 1, but not as a loss."""
    x = np.float32([5, 10, 20, 30, 80, -5, -10, -20, -30, -80])
    a, b = ag.Input("a", (10,)), ag.Input("b", (10,))
    y = F.binary_cross_entropy_with_logits(a, b, reduction="none")
    got = ag.function([a, b], [y, grad(F.sum(y), a)]).on_host()(x, np.float32(x > 0))
    small = np.exp(-np.abs(x.astype("float64")))
    np.testing.assert_allclose(got[0], np.log1p(small), rtol=5e-7)
    np.testing.assert_allclose(got[1], -np.sign(x) * small / (1 + small), atol=1e-7)


LABELLED: list[Callable[..., Any]] = [
    lambda x, t: F.cross_entropy(x, t, weight=WEIGHT, label_smoothing=0.1),
    lambda x, t: F.cross_entropy(x, t, ignore_index=1),
    lambda x, t: F.nll_loss(x, t, weight=WEIGHT, ignore_index=200),
    lambda x, t: F.smooth_l1_loss(x, 0.5 * x),
    lambda x, t: F.huber_loss(x, F.detach(x) * x),
    lambda x, t: F.binary_cross_entropy_with_logits(x, 0.5 * x, weight=WEIGHT),
    lambda x, t: F.kl_div(x, F.softmax(x, 1), reduction="batchmean"),
    lambda x, t: F.kl_div(x, F.softmax(x, 1)),
    lambda x, t: F.cosine_embedding_loss(x, x + WEIGHT, F.sum(x, 1) * 0.0 + 1.0),
    lambda x, t: F.triplet_margin_loss(x, x + WEIGHT, x * WEIGHT),
    lambda x, t: F.multi_margin_loss(x, t, weight=WEIGHT),
    lambda x, t: F.gaussian_nll_loss(x, 0.5 * x, F.square(x)),
    lambda x, t: F.ctc_loss(
        F.transpose(F.log_softmax(F.reshape(x, (-1, 3, 1)) * WEIGHT, 2), 0, 1),
        F.stack([t, t], 1),
        *(F.full((x.shape[0],), k, dtype="s32") for k in (3, 1)),
    ),
]


@pytest.mark.cc
@pytest.mark.parametrize("f", LABELLED)
def test_means_over_the_rows_that_are_given(f: Callable[..., Any]) -> None:
    """A graph for up to 4 rows, given fewer, equals the graph for that many; in C too."""

    def built(size: int) -> tuple[list[Any], list[Any]]:
        inputs = [ag.Input("x", (size, 3), batch_axis=0), ag.Input("t", (size,), dtype="u8", batch_axis=0)]
        y = f(*inputs)
        return inputs, [y, grad(y, inputs[0])]

    graphs = {size: built(size) for size in (1, 3, 4)}
    functions = host_functions([ag.function(*graph) for graph in graphs.values()])
    in_c = dict(zip(graphs, functions, strict=True))
    for rows in (1, 3, 4):
        rng = np.random.default_rng(rows)
        arrays = [np.float32(rng.uniform(-1, 1, (rows, 3))), np.uint8([0, 2, 1, 2])[:rows]]
        results = []
        for size in (4, rows):
            inputs, outputs = graphs[size]
            results.append(evaluate(outputs, dict(zip(inputs, arrays, strict=True))))
            results.append(in_c[size](*arrays))
        for other in results[1:]:
            for a, b in zip(results[0], other, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6, err_msg=f"{rows} rows")


# Labels that count for nothing


@pytest.mark.cc
@pytest.mark.parametrize("ignore_index, dtype, wrong", [(255, "u8", 3), (-100, "s32", -1), (7, "s32", 3)])
def test_an_ignored_label_passes_the_check_of_the_range(ignore_index: int, dtype: str, wrong: int) -> None:
    x, t = ag.Input("x", (3, 3)), ag.Input("t", (3,), dtype=dtype)
    f = ag.function([x, t], [F.cross_entropy(x, t, ignore_index=ignore_index)]).on_host()
    scores = np.float32(np.arange(9).reshape(3, 3) ** 2 / 20)
    ours = f(scores, [0, ignore_index, 2])[0]
    y = F.cross_entropy(x2 := ag.Input("x", (2, 3)), [0, 2])
    np.testing.assert_allclose(ours, evaluate([y], {x2: scores[[0, 2]]})[0], rtol=1e-6)
    with pytest.raises(ShapeError, match=rf"^t\[1\] is {wrong}, outside 0 to 2$"):
        f(scores, [0, wrong, 2])


@pytest.mark.cc
def test_a_label_that_only_one_reader_ignores_is_checked() -> None:
    for order in (1, -1):
        x, t = ag.Input("x", (3, 3)), ag.Input("t", (3,), dtype="s32")
        losses = [F.cross_entropy(x, t), F.pick(x, t)][::order]
        f = ag.function([x, t], losses).on_host()
        f(np.ones((3, 3), np.float32), [0, 1, 2])
        with pytest.raises(ShapeError, match=r"^t\[2\] is -100, outside 0 to 2$"):
            f(np.ones((3, 3), np.float32), [0, 1, -100])


@pytest.mark.torch
def test_when_all_labels_are_ignored_no_gradient_flows() -> None:
    import torch

    x, t = ag.Input("x", (2, 3)), ag.Input("t", (2,), dtype="s32")
    y = F.cross_entropy(x, t)
    value, dx = evaluate([y, grad(y, x)], {x: np.ones((2, 3)), t: [-100, -100]})
    scores = torch.ones((2, 3), requires_grad=True)
    torch.nn.functional.cross_entropy(scores, torch.tensor([-100, -100])).backward()
    assert np.isnan(value)
    np.testing.assert_array_equal(dx, scores.grad.numpy())


def test_the_label_of_a_model_can_hold_what_is_ignored() -> None:
    def kind(**options: Any) -> str:
        net, loss = nn.Sequential(nn.Linear(4, 3)), nn.CrossEntropyLoss(**options)
        return str(ag.Model.supervised(net, (2, 4), loss, optim.SGD()).targets[0].dtype)

    assert [kind(), kind(ignore_index=255), kind(ignore_index=-1)] == ["u8", "u8", "s32"]


# Modules

MODULES: list[tuple[str, dict[str, Any]]] = [
    ("NLLLoss", {"weight": WEIGHT, "ignore_index": 1, "reduction": "sum"}),
    ("CrossEntropyLoss", {"weight": WEIGHT, "ignore_index": 1, "label_smoothing": 0.1}),
    ("MSELoss", {"reduction": "sum"}),
    ("L1Loss", {"reduction": "sum"}),
    ("SmoothL1Loss", {"beta": 0.5}),
    ("HuberLoss", {"delta": 0.5}),
    ("BCELoss", {"weight": WEIGHT}),
    ("BCEWithLogitsLoss", {"weight": WEIGHT, "pos_weight": WEIGHT[::-1].copy()}),
    ("KLDivLoss", {"reduction": "batchmean", "log_target": True}),
    ("CosineEmbeddingLoss", {"margin": 0.25}),
    ("HingeEmbeddingLoss", {"margin": 0.5}),
    ("MarginRankingLoss", {"margin": 0.5}),
    ("SoftMarginLoss", {"reduction": "sum"}),
    ("MultiLabelSoftMarginLoss", {"weight": WEIGHT}),
    ("MultiMarginLoss", {"p": 2, "margin": 0.5, "weight": WEIGHT}),
    ("TripletMarginWithDistanceLoss", {"margin": 0.5, "swap": True, "reduction": "sum"}),
    ("GaussianNLLLoss", {"full": True, "eps": 0.3}),
    ("PoissonNLLLoss", {"log_input": False, "full": True, "eps": 0.1}),
    ("CTCLoss", {"blank": 1, "reduction": "sum", "zero_infinity": True}),
    ("TripletMarginLoss", {"margin": 0.5, "p": 1, "eps": 1e-3, "swap": True, "reduction": "sum"}),
]
THREE = {"TripletMarginLoss", "TripletMarginWithDistanceLoss", "MarginRankingLoss", "GaussianNLLLoss"}
FUNCTION_ONLY = {"reduce", "size_average"}


@pytest.mark.torch
@pytest.mark.parametrize("name, options", MODULES, ids=lambda v: v if isinstance(v, str) else "")
def test_modules_hand_everything_on(name: str, options: dict[str, Any]) -> None:
    """The same value as torch's module, whose arguments and defaults ours has."""
    import torch

    rng = np.random.default_rng(3)
    arrays: list[Any] = [rng.uniform(0.1, 0.9, (4, 3)) for _ in range(3)]
    if name in ("NLLLoss", "CrossEntropyLoss", "MultiMarginLoss"):
        arrays = [arrays[0], rng.integers(0, 3, 4)]
    elif name == "CosineEmbeddingLoss":
        arrays[2] = np.array([1.0, -1, 1, -1])
    elif name == "CTCLoss":
        labels = np.array([[2, 2], [0, 2]])
        arrays = [np.log(rng.uniform(0.1, 0.9, (5, 2, 3))), labels, np.array([5, 2]), np.array([2, 1])]
    elif name not in THREE:
        arrays = [
            arrays[0],
            np.where(arrays[1] > 0.5, 1.0, -1.0)
            if name in ("HingeEmbeddingLoss", "SoftMarginLoss")
            else arrays[1],
        ]
    inputs = [
        ag.Input("abcd"[i], a.shape, dtype="f32" if a.dtype.kind == "f" else "s32")
        for i, a in enumerate(arrays)
    ]
    theirs_of = getattr(torch.nn, name)
    for given in (options, {}):
        y = getattr(nn, name)(**given)(*inputs)
        got = evaluate([y], dict(zip(inputs, arrays, strict=True)), float_dtype="float64")[0]
        tensors = {k: torch.tensor(v).double() if isinstance(v, np.ndarray) else v for k, v in given.items()}
        want = theirs_of(**tensors)(*map(torch.tensor, arrays))
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-6)
    ours, theirs = (inspect.signature(c).parameters for c in (getattr(nn, name), theirs_of))
    assert {k: p.default for k, p in ours.items()} == {
        k: p.default for k, p in theirs.items() if k not in FUNCTION_ONLY
    }


X = ag.Input("x", (2, 3))
T = ag.Input("t", (2,), dtype="s32")
U = ag.Input("u", (2,), dtype="u8")
V = ag.Input("v", (2,))

REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.nll_loss(X, T, weight=[1.0, 2.0]), r"^nll_loss\(x: .*\): weight must have one number .* \[3\]$"),
    (lambda: F.nll_loss(X, T, "sum"), "^nll_loss: weight='sum' is not an array of numbers$"),
    (lambda: F.cross_entropy(X, X, weight=[1.0, 2.0]), r"weight must have one number per class, \[3\]$"),
    (lambda: F.cross_entropy(X, X, ignore_index=1), "^cross_entropy: ignore_index=1 is for class indices"),
    (lambda: F.cross_entropy(X, T, ignore_index=1.0), "^cross_entropy: ignore_index=1.0 must be an integer$"),
    (lambda: F.cross_entropy(X, T, label_smoothing=1.5), "label_smoothing=1.5 must be a number from 0 to 1$"),
    (lambda: F.cross_entropy(X, F.to(F.sum(X @ np.ones((3, 3)), 1), "s32")), "^pick.*: the index depends on param"),
    (lambda: F.cross_entropy(X, [0, 3]), "an index is outside 0 to 2"),
    (lambda: F.cross_entropy(ag.Input("x", (2, 3, 4)), T), r"\[N, C, d\] a target \[N, d\], .*; got \[2\]$"),
    (lambda: F.smooth_l1_loss(X, X, beta=-1), "^smooth_l1_loss: beta=-1 must be a number of at least 0$"),
    (lambda: F.huber_loss(X, X, delta=0), "^huber_loss: delta=0 must be greater than 0$"),
    (lambda: F.huber_loss(X, X, delta=np.nan), "^huber_loss: delta=nan must be a finite number$"),
    (lambda: F.margin_ranking_loss(X, X, V), r"^margin_ranking_loss\(.*\): all must have the same shape$"),
    (lambda: F.multi_margin_loss(X, T, p=3), "p=3 to be 1 or 2$"),
    (lambda: F.multi_margin_loss(X, T, weight=[1.0]), r"weight must have one number per class, \[3\]$"),
    (lambda: F.gaussian_nll_loss(X, X, np.ones(3)), "var must have the input's shape, with or without its last axis$"),
    (lambda: F.ctc_loss(X, [[1]], 2, 1), r"^ctc_loss\(.*\): needs log_probs \[T, N, C\] and targets \[N, S\]$"),
    (lambda: F.ctc_loss(X, [1], 2, 1, blank=3), "blank=3 is outside 0 to 2$"),
    (lambda: F.ctc_loss(X[None], [[1], [1]], [1], [1]), r"targets \[N, S\] and lengths \[N\] must have N = 2$"),
    (lambda: F.l1_loss(X, T), r"^l1_loss\(x: f32\[2,3\], t: s32\[2\]\): input and target must have the same shape$"),
    (lambda: F.l1_loss(X, X, weight=np.ones(3)), "^l1_loss: the argument 'weight' is not supported$"),
    (lambda: F.binary_cross_entropy(X, X, weight=np.ones((4, 2, 3))), r"weight \[4, 2, 3\] does not broadcast"),
    (lambda: F.binary_cross_entropy_with_logits(X, X, pos_weight=np.ones(2)), r"pos_weight \[2\] does not broadcast"),
    (lambda: F.kl_div(X, X, reduction="batch"), '^kl_div: .*; known: "batchmean", "mean", "sum", "none"$'),
    (lambda: F.mse_loss(X, X, reduction="batchmean"), "^mse_loss: reduction='batchmean'; known"),
    (lambda: F.cosine_embedding_loss(X, X, X), r"inputs \[N, D\] need a target \[N\], inputs \[D\] a scalar$"),
    (lambda: F.cosine_embedding_loss(X, X, U), "the target is 1 or -1; its dtype must be signed$"),
    (lambda: F.hinge_embedding_loss(V, X), "input and target must have the same shape"),
    (lambda: F.hinge_embedding_loss(V, U), "its dtype must be signed"),
    (lambda: F.triplet_margin_loss(X, X, V), r"all three must have one shape, \[N, D\] or \[D\]$"),
    (lambda: F.triplet_margin_loss(X, X, X, p=3), "^triplet_margin_loss: p=3 is not supported; known: 1, 2$"),
    (lambda: F.triplet_margin_loss(X, X, X, margin=-1.0), ": margin=-1.0 must be a number of at least 0$"),
    (lambda: F.triplet_margin_loss(X, X, X, size_average=True), "the argument 'size_average' is not supported$"),
    (lambda: nn.KLDivLoss(reduction="avg"), '^KLDivLoss: .*; known: "mean", "batchmean", "sum", "none"$'),
    (lambda: nn.L1Loss(reduction="batchmean"), "^L1Loss: reduction='batchmean'; known"),
    (lambda: nn.CrossEntropyLoss(reduce=False), "^CrossEntropyLoss: the argument 'reduce' is not supported$"),
]  # fmt: skip


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, REJECTED, (ShapeError, ModelError))


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (3,)])
def test_the_gradient_of_log_probabilities_and_of_their_scores(shape: tuple[int, ...]) -> None:
    """The derivative of nll_loss is stated for the scores, and log-probabilities have their gradient too."""
    import torch

    rng = np.random.default_rng(1)
    of = (*shape[:1], *shape[2:]) if len(shape) > 1 else ()
    scores, target = rng.normal(size=shape), rng.integers(0, 3, of)
    x, t = ag.Input("x", shape), ag.Input("t", of, dtype="s32")
    axis = min(len(shape), 2) - 1
    logp = F.log_softmax(x, axis)
    loss = F.nll_loss(logp, t)
    ours = evaluate([grad(loss, logp), grad(loss, x)], {x: scores, t: target})
    z = torch.tensor(scores, requires_grad=True)
    theirs = torch.log_softmax(z, axis)
    theirs.retain_grad()
    torch.nn.functional.nll_loss(theirs, torch.tensor(target)).backward()
    for got, want in zip(ours, (theirs.grad, z.grad), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-6, atol=1e-7)
