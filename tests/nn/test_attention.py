"""Attention against PyTorch: the function with all kinds of masks, the layers step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import Row, check_c, check_float64
from rejections import all_rejected
from torch_weights import with_weights_of

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value
from autodiff_gen.passes.training.resolve_mode import resolved

RNG = np.random.default_rng(3)
BOOL = RNG.random((4, 6)) > 0.4
BOOL[:, 0] = True  # every query has a key
HOLES = RNG.random((2, 1, 4, 6)) > 0.5
HOLES[0, 0, 2] = False  # this one has none
ADDED = RNG.normal(size=(4, 6)).astype(np.float32)
INFINITE = np.where(BOOL, ADDED, -np.inf).astype(np.float32)
Q, K, V = (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)


def attend(**options: Any) -> Callable[..., Any]:
    """The function with a mask from `options`, which PyTorch wants as a tensor."""

    def expression(F: Any, *qkv: Any) -> Any:
        given = dict(options)
        if "attn_mask" in given and not isinstance(qkv[0], Value):
            import torch

            given["attn_mask"] = torch.tensor(given["attn_mask"]).to(
                torch.bool if given["attn_mask"].dtype == bool else qkv[0].dtype
            )
        return F.scaled_dot_product_attention(*qkv, **given)

    return expression


ROWS: list[Row] = [
    ("plain", attend(), [Q, K, V]),
    ("one_sequence", attend(), [(4, 5), (6, 5), (6, 7)]),
    ("one_key", attend(), [(4, 5), (1, 5), (1, 7)]),
    ("scale", attend(scale=0.3), [Q, K, V]),
    ("broadcast", attend(), [(2, 1, 4, 5), (3, 6, 5), (6, 7)]),
    ("bool", attend(attn_mask=BOOL), [Q, K, V]),
    ("bool_with_a_query_without_keys", attend(attn_mask=HOLES), [Q, K, V]),
    ("added", attend(attn_mask=ADDED, scale=1.0), [Q, K, V]),
    ("added_with_infinities", attend(attn_mask=INFINITE), [Q, K, V]),
    ("causal", attend(is_causal=True), [Q, K, V]),
    ("causal_fewer_keys", attend(is_causal=True), [(2, 6, 5), (2, 4, 5), (2, 4, 3)]),
    ("shared", lambda F, x: F.scaled_dot_product_attention(x, x, x, is_causal=True), [(2, 4, 5)]),
]
IN_C = ("bool_with_a_query_without_keys", "added_with_infinities", "causal", "shared")


@pytest.mark.torch
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r[0])
def test_attention_is_torchs(row: Row) -> None:
    check_float64(row)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("row", [r for r in ROWS if r[0] in IN_C], ids=lambda r: r[0])
def test_attention_in_c_is_torchs(row: Row) -> None:
    check_c(row)


@pytest.mark.torch
def test_masks_that_are_inputs() -> None:
    """A mask of floats has a gradient; one of bool is made inside from numbers."""

    def of_floats(F: Any, q: Any, mask: Any) -> Any:
        return F.scaled_dot_product_attention(q, q, q, mask)

    check_float64(("floats", of_floats, [(2, 6, 5), (2, 6, 6)]))
    x, lengths = ag.Input("x", (2, 6, 5)), ag.Input("lengths", (2, 1, 1), "s32")
    shown = np.arange(6)[None, None, :] < lengths
    y = F.scaled_dot_product_attention(x, x, x, shown)
    array = RNG.normal(size=(2, 6, 5)).astype(np.float32)
    (got,) = ag.function([x, lengths], [y]).on_host()(array, np.array([4, 0]).reshape(2, 1, 1))
    np.testing.assert_array_equal(got[1], 0.0)
    plain = ag.Input("plain", (4, 5))
    part = ag.function([plain], [F.scaled_dot_product_attention(plain, plain, plain)]).on_host()
    assert not np.allclose(got[0, :4], array[0, :4])
    np.testing.assert_allclose(got[0, :4], part(array[0, :4])[0], rtol=1e-5)


X, WIDE = ag.Input("x", (2, 4, 5)), ag.Input("wide", (2, 4, 6))
REJECTED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: F.scaled_dot_product_attention(X, WIDE, X),
        r"^scaled_dot_product_attention\(x: f32\[2,4,5\], wide: f32\[2,4,6\], x: f32\[2,4,5\]\): needs query",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, np.ones((3, 4), bool)),
        r"the mask \[3, 4\] does not broadcast to \[2, 4, 4\]$",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, np.ones((4, 4), np.int32)),
        r"the mask must be bool or float$",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, np.ones((4, 4), bool), is_causal=True),
        r"give either attn_mask or is_causal=True$",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, dropout_p=1.5),
        r"^dropout\(f32\[2,4,4\]\): p=1.5 must be a probability, from 0 to 1$",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, enable_gqa=True),
        r"^scaled_dot_product_attention: the argument 'enable_gqa' is not supported$",
    ),
]


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, REJECTED, ShapeError)


# ---- the layers


def both(build: Callable[[Any], Any], *shapes: tuple[int, ...], **masks: Any) -> None:
    """The layer's outputs, and the gradients of inputs and parameters, in float64 and in C, beside PyTorch's."""
    import torch

    layer, twin = build(nn), build(torch.nn).double()
    inputs = [ag.Input("qkv"[i], shape) for i, shape in enumerate(shapes)]
    outs = layer(*(inputs * 3)[:3] if len(inputs) in (1, 3) else (inputs[0], inputs[1], inputs[1]), **masks)
    parameters = dict(layer.named_parameters())
    assert list(parameters) == list(twin.state_dict())
    rng = np.random.default_rng(2)
    arrays = {v: rng.normal(size=v.shape).astype(np.float32) for v in (*inputs, *parameters.values())}
    twin.load_state_dict({k: torch.tensor(arrays[v]) for k, v in parameters.items()})
    tensors = [torch.tensor(arrays[v], dtype=torch.float64, requires_grad=True) for v in inputs]
    given = (tensors * 3)[:3] if len(tensors) in (1, 3) else (tensors[0], tensors[1], tensors[1])
    tensor_masks = {k: torch.tensor(m) for k, m in masks.items() if isinstance(m, np.ndarray)}
    tensor_masks = {k: m.double() if m.is_floating_point() else m for k, m in tensor_masks.items()}
    wanted = twin(*given, **{**masks, **tensor_masks})

    ours = [v for v in outs if v is not None]
    theirs = [t for t in wanted if t is not None]
    y = F.sum(ours[0] * np.cos(np.arange(np.prod(ours[0].shape)).reshape(ours[0].shape)))
    t = (theirs[0] * torch.cos(torch.arange(theirs[0].numel())).reshape(theirs[0].shape)).sum()
    leaves = [*tensors, *twin.parameters()]
    expected = [*theirs, *torch.autograd.grad(t, leaves)]
    values = [*ours, *ag.grad(y, list(arrays))]
    for a, b in zip(evaluate(values, arrays, float_dtype="float64"), expected, strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-6, atol=1e-6)
    in_c = ag.function(list(arrays), values).on_host()(*arrays.values())
    for a, b in zip(in_c, expected, strict=True):
        largest = max(1.0, float(b.detach().abs().max()))
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-5, atol=1e-5 * largest)


PADDED = np.array([[False, False, True], [False, True, True]])
CAUSAL = np.triu(np.ones((3, 3), bool), 1)
LAYERS: dict[str, tuple[Any, ...]] = {
    "self": (lambda nn: nn.MultiheadAttention(6, 2), [(3, 2, 6)], {}),
    "self_batch_first": (
        lambda nn: nn.MultiheadAttention(6, 3, batch_first=True),
        [(2, 3, 6)],
        {"key_padding_mask": PADDED, "average_attn_weights": False},
    ),
    "one_sequence": (lambda nn: nn.MultiheadAttention(6, 2), [(3, 6)], {"attn_mask": CAUSAL}),
    "no_bias": (
        lambda nn: nn.MultiheadAttention(6, 2, bias=False, batch_first=True),
        [(2, 3, 6)],
        {"attn_mask": CAUSAL, "key_padding_mask": PADDED, "need_weights": False},
    ),
    "memory": (lambda nn: nn.MultiheadAttention(6, 2), [(4, 2, 6), (3, 2, 6)], {}),
    "three": (
        lambda nn: nn.MultiheadAttention(6, 2, kdim=4, vdim=5),
        [(4, 2, 6), (3, 2, 4), (3, 2, 5)],
        {"attn_mask": RNG.normal(size=(4, 4, 3)).astype(np.float32)},
    ),
}


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_multihead_attention_is_torchs(name: str) -> None:
    build, shapes, masks = LAYERS[name]
    both(build, *shapes, **masks)


BLOCKS: list[dict[str, Any]] = [
    {"batch_first": True},
    {"batch_first": True, "norm_first": True, "activation": "gelu", "bias": False},
    {"layer_norm_eps": 1e-3},
]


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("options", BLOCKS, ids=lambda o: next(iter(o)) + str(len(o)))
def test_steps_of_an_encoder_block_equal_pytorchs(options: dict[str, Any]) -> None:
    """A block and a classifier, with AdamW and any number of rows up to the batch."""
    import torch

    def build(nn: Any) -> Any:
        return nn.TransformerEncoderLayer(8, 2, dim_feedforward=12, dropout=0.0, **options)

    block, head = build(nn), nn.Linear(8, 3)
    names = [name for name, _ in nn.Sequential(block, head).named_parameters()]
    x, label = ag.Input("x", (4, 5, 8), batch_axis=0), ag.Input("label", (4,), "u8", batch_axis=0)
    first = options.get("batch_first", False)
    hidden = block(x, src_mask=np.triu(np.ones((5, 5), bool), 1)) if first else block(F.transpose(x, 0, 1))
    scores = head(F.mean(hidden, 1 if first else 0))
    model = ag.Model([x], [label], {"scores": scores}, F.cross_entropy(scores, label), optim.AdamW(lr=0.01))
    trainer = model.on_host()
    twin = with_weights_of(torch.nn.Sequential(build(torch.nn), torch.nn.Linear(8, 3)), trainer.state_dict())
    update = torch.optim.AdamW(twin.parameters(), lr=0.01)
    mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1) if first else None
    rng = np.random.default_rng(4)
    for k in range(8):
        rows = 4 - k % 4
        array = rng.normal(size=(rows, 5, 8)).astype(np.float32)
        labels = rng.integers(0, 3, rows)
        given = torch.tensor(array)
        hidden = twin[0](given, src_mask=mask) if first else twin[0](given.transpose(0, 1))
        loss = torch.nn.functional.cross_entropy(
            twin[1](hidden.mean(1 if first else 0)), torch.tensor(labels)
        )
        update.zero_grad()
        loss.backward()
        update.step()
        assert trainer.train_step(array, labels) == pytest.approx(loss.item(), rel=1e-4)
    state = trainer.state_dict()
    assert names == list(twin.state_dict())
    for name, value in twin.state_dict().items():
        # The keys' bias moves all scores of a query alike: its gradient is rounding, and Adam makes much of it.
        compared = np.r_[0:8, 16:24] if name.endswith("in_proj_bias") else slice(None)
        np.testing.assert_allclose(state[name][compared], value.numpy()[compared], rtol=1e-4, atol=2e-4)


def test_dropout_acts_in_training_alone() -> None:
    """With the identity as value the weights are seen: in training each is 0 or twice its value in evaluation."""
    x = ag.Input("x", (20, 5))
    array = RNG.normal(size=(20, 5)).astype(np.float32)
    y = F.scaled_dot_product_attention(x, x, np.eye(20, dtype=np.float32), dropout_p=0.5)
    (want,) = evaluate(resolved([y], training=False).roots, {x: array})
    (got,) = evaluate(resolved([y], training=True).roots, {x: array, F.random_step(): np.uint32(3)})
    dropped = got == 0.0
    assert 0.4 < dropped.mean() < 0.6
    np.testing.assert_allclose(got[~dropped], 2.0 * want[~dropped], rtol=1e-6)


@pytest.mark.torch
def test_weights_start_as_torchs_do() -> None:
    """Uniform within PyTorch's own bounds, biases 0."""
    import torch

    layer = nn.MultiheadAttention(16, 4)
    starts = {k: v.node.attrs["state"].init for k, v in layer.named_parameters()}
    assert starts["in_proj_weight"].bound == pytest.approx((6 / (16 + 48)) ** 0.5)
    assert starts["out_proj.weight"].bound == pytest.approx(0.25)
    assert starts["in_proj_bias"].value == starts["out_proj.bias"].value == 0.0
    for name, tensor in torch.nn.MultiheadAttention(16, 4).state_dict().items():
        assert tensor.shape == starts[name].shape
        bound = getattr(starts[name], "bound", 0.0)
        assert 0.9 * bound <= float(tensor.abs().max()) <= bound


SHORT = ag.Input("s", (3, 6))
REJECTED_LAYERS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: nn.MultiheadAttention(6, 4),
        "^MultiheadAttention: embed_dim=6 cannot be divided into num_heads=4 heads$",
    ),
    (
        lambda: nn.MultiheadAttention(0, 1),
        "^MultiheadAttention: embed_dim=0 must be an integer of at least 1$",
    ),
    (
        lambda: nn.MultiheadAttention(6, 2, 1.1),
        "^MultiheadAttention: p=1.1 must be a probability, from 0 to 1$",
    ),
    (
        lambda: nn.MultiheadAttention(6, 2, add_zero_attn=True),
        "^MultiheadAttention: the argument 'add_zero_attn' is not supported$",
    ),
    (
        lambda: nn.MultiheadAttention(5, 1)(SHORT, SHORT, SHORT),
        r"^MultiheadAttention\(s: f32\[3,6\], .*\): needs \[length, N, width\], or .* of widths \[5, 5, 5\]$",
    ),
    (
        lambda: nn.MultiheadAttention(6, 1)(SHORT, SHORT, SHORT, attn_mask=np.ones((2, 3), bool)),
        r"^MultiheadAttention\(bool\[2,3\]\): attn_mask must have the shape \[3, 3\] or \[1, 3, 3\]$",
    ),
    (
        lambda: nn.MultiheadAttention(6, 1)(SHORT, SHORT, SHORT, is_causal=True),
        r"is_causal=True needs a causal attn_mask$",
    ),
    (
        lambda: nn.TransformerEncoderLayer(6, 2, dropout=0.0, activation="tanh"),
        '^TransformerEncoderLayer: activation=\'tanh\'; known: "relu", "gelu", or a function$',
    ),
]


@pytest.mark.parametrize("build, message", REJECTED_LAYERS)
def test_layers_reject_in_one_line(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ag.AutodiffError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)
