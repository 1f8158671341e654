"""Names of torch and torch.nn.functional that `functional` lacks, and what to use instead."""

from __future__ import annotations

_THREE_AXES = "images have two axes: use {}2d on [N, C * D, H, W], or F.scan over the third axis"
_IN_PLACE = "use F.{}: buffer assignment decides which values are updated in place"
_INDICES = "use F.{} for the values; max_pool2d's gradient finds its element itself"
_MASKED = "its result's size depends on values; use F.where with a mask"
_NO_NUMBERS = (
    "values are known when the model runs; use F.where, F.cond and F.scan in place of Python's if and while"
)
_RANDOM = "draw in the data pipeline, or use F.rand and F.randn"
_COMPLEX = (
    "there are no complex numbers; compute spectra before the model, or as F.matmul with sines and cosines"
)

ALTERNATIVES = {
    **{
        name: _THREE_AXES.format("F." + name.removesuffix("3d"))
        for name in ("conv3d", "conv_transpose3d", "avg_pool3d", "max_pool3d", "adaptive_avg_pool3d")
    },
    "adaptive_max_pool3d": _THREE_AXES.format("F.adaptive_max_pool"),
    "dropout3d": _THREE_AXES.format("F.dropout"),
    **{
        f"{name}_": _IN_PLACE.format(name)
        for name in ("celu", "elu", "hardtanh", "leaky_relu", "relu", "selu", "threshold", "sigmoid", "tanh")
    },
    "rrelu_": "use F.leaky_relu",
    **{
        f"{name}_with_indices": _INDICES.format(name)
        for name in ("adaptive_max_pool1d", "adaptive_max_pool2d", "max_pool1d", "max_pool2d")
    },
    **{
        f"{name}3d_with_indices": _INDICES.format(f"{name}2d")
        for name in ("adaptive_max_pool", "fractional_max_pool", "max_pool")
    },
    **{f"max_unpool{k}d": "use F.interpolate, or F.conv_transpose2d" for k in (1, 2, 3)},
    **{f"lp_pool{k}d": "use F.avg_pool2d of a power, and a root of the result" for k in (1, 2, 3)},
    **dict.fromkeys(
        ("fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d"),
        "use F.adaptive_max_pool2d",
    ),
    **dict.fromkeys(("alpha_dropout", "feature_alpha_dropout"), "use F.dropout"),
    **dict.fromkeys(("upsample", "upsample_bilinear", "upsample_nearest"), "use F.interpolate"),
    **dict.fromkeys(
        ("fold", "unfold"), "use F.conv2d and F.conv_transpose2d, which need no copies of windows"
    ),
    "conv_tbc": "use F.conv1d with F.permute",
    "embedding_bag": "use F.embedding, and F.sum or F.mean over the bag",
    "gumbel_softmax": "use F.softmax; " + _RANDOM,
    **dict.fromkeys(("linear_cross_entropy",), "use F.cross_entropy of F.linear"),
    **dict.fromkeys(("grouped_mm", "scaled_grouped_mm", "scaled_mm"), "use F.matmul"),
    "multi_head_attention_forward": "use nn.MultiheadAttention, or F.scaled_dot_product_attention",
    "multilabel_margin_loss": "use F.multilabel_soft_margin_loss",
    "native_channel_shuffle": "use F.channel_shuffle",
    "pdist": "use F.cdist of the rows with themselves",
    "rrelu": "use F.where(x >= 0, x, x * slope) with a slope of F.rand_like, or F.leaky_relu",
    "tanhshrink": "use x - F.tanh(x)",
    **dict.fromkeys(("masked_select", "nonzero", "unique", "bincount"), _MASKED),
    **dict.fromkeys(("fft", "rfft", "irfft", "stft", "complex", "view_as_complex", "view_as_real"), _COMPLEX),
    "bernoulli": "use F.rand_like(p) < p",
    **dict.fromkeys(("multinomial", "randperm"), _RANDOM),
    "randint": "use floor(rand(size) * n), or draw in the data pipeline",
    "randint_like": "use floor(rand_like(x) * n), or draw in the data pipeline",
    **dict.fromkeys(("tensor", "as_tensor", "from_numpy"), "give the NumPy array, list or number itself"),
    **dict.fromkeys(("allclose", "equal", "is_nonzero"), _NO_NUMBERS),
    **dict.fromkeys(("no_grad", "inference_mode", "enable_grad"), "use F.detach, or requires_grad=False"),
    "clone": "leave it out: values do not change",
    "cross": "use F.roll and products",
    "cumprod": "use F.exp(F.cumsum(F.log(x), dim)) of positive numbers",
    "diag": "use F.where(F.eye(n, dtype='bool'), x, 0.0), or F.diagonal of a matrix",
    "trace": "use F.sum(x * F.eye(n))",
    "hstack": "use F.cat",
    "vstack": "use F.cat",
    "concat": "use F.cat",
    "concatenate": "use F.cat",
    **dict.fromkeys(
        ("cholesky", "triangular_solve"),
        "factor constants before the model; of a normal distribution use independent components, as "
        "torch.distributions.Independent(Normal(mean, scale), 1)",
    ),
    "inverse": "solve before the model, or iterate in F.scan",
    "kron": "use F.einsum",
    "median": "use F.sort(x, dim)[0], and the element in the middle",
    "meshgrid": "use F.arange with F.unsqueeze: values broadcast",
    "view": "use F.reshape",
}

_TO_DEVICE = "leave it out: the board is chosen when the model is built"

# Methods of torch.Tensor that graph values do not have.
METHODS = {
    **dict.fromkeys(("item", "numpy", "tolist"), _NO_NUMBERS),
    **dict.fromkeys(("cpu", "cuda", "pin_memory", "device"), _TO_DEVICE),
    **{
        f"{name}_": _IN_PLACE.format(name)
        for name in ("abs", "add", "clamp", "div", "exp", "mul", "relu", "sigmoid", "sqrt", "sub", "tanh")
    },
    **dict.fromkeys(("index_add_", "scatter_add_", "masked_fill_"), "use the function without _ in its name"),
    **dict.fromkeys(
        ("backward", "grad", "retain_grad", "register_hook"), "ag.Model and ag.grad differentiate"
    ),
    "is_cuda": _TO_DEVICE,
    "stride": "layouts are assigned by the compiler",
    "as_strided": "layouts are assigned by the compiler; use F.narrow, F.unflatten and F.permute",
    "mT": "use x.transpose(-1, -2)",
    "double": "values are f32",
    "half": "values are f32; quant.quantize makes integers of a trained network",
}
