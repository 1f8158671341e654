"""Names of torch.nn that `nn` lacks, and what to use instead."""

from __future__ import annotations

_DEVICE = "leave it out: the board is chosen when the model is built"
_F32 = "parameters are f32; quant.quantize makes integers of a trained network"
_HOOK = "compute in forward, not in a hook"

# Methods of torch.nn.Module.
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

_THREE_AXES = "images have two axes: use nn.{}2d on [N, C * D, H, W], or F.scan over the third axis"
_LAZY = "give the number of inputs: nn.{}"

# Names of torch.nn.
ALTERNATIVES = {
    **{
        f"{name}3d": _THREE_AXES.format(name)
        for name in (
            "AdaptiveAvgPool",
            "AdaptiveMaxPool",
            "AvgPool",
            "BatchNorm",
            "CircularPad",
            "ConstantPad",
            "Conv",
            "ConvTranspose",
            "Dropout",
            "InstanceNorm",
            "MaxPool",
            "ReflectionPad",
            "ReplicationPad",
            "ZeroPad",
        )
    },
    **{
        f"Lazy{name}": _LAZY.format(name.replace("3d", "2d"))
        for name in (
            "Linear",
            *(
                f"{of}{k}d"
                for of in ("BatchNorm", "Conv", "ConvTranspose", "InstanceNorm")
                for k in (1, 2, 3)
            ),
        )
    },
    **dict.fromkeys(("UninitializedBuffer", "UninitializedParameter"), "use nn.Parameter of an initialiser"),
    **dict.fromkeys(("AlphaDropout", "FeatureAlphaDropout"), "use nn.Dropout"),
    **dict.fromkeys(("FractionalMaxPool2d", "FractionalMaxPool3d"), "use nn.AdaptiveMaxPool2d"),
    **{f"LPPool{k}d": "use F.avg_pool2d of a power, and a root of the result" for k in (1, 2, 3)},
    **{f"MaxUnpool{k}d": "use nn.Upsample, or nn.ConvTranspose2d" for k in (1, 2, 3)},
    **dict.fromkeys(
        ("Fold", "Unfold"), "use nn.Conv2d and nn.ConvTranspose2d, which need no copies of windows"
    ),
    "AdaptiveLogSoftmaxWithLoss": "use nn.Linear with nn.CrossEntropyLoss",
    "Container": "use nn.Module",
    "CrossMapLRN2d": "use nn.LocalResponseNorm",
    "DataParallel": "leave it out: one board trains one model",
    "EmbeddingBag": "use nn.Embedding, and F.sum or F.mean over the bag",
    **dict.fromkeys(
        ("LinearCrossEntropyLoss", "LinearCrossEntropyOptions"), "use nn.Linear with nn.CrossEntropyLoss"
    ),
    "MultiLabelMarginLoss": "use nn.MultiLabelSoftMarginLoss",
    "NLLLoss2d": "use nn.NLLLoss",
    "RNNBase": "use nn.RNN, nn.GRU or nn.LSTM",
    "RNNCellBase": "use nn.RNNCell, nn.GRUCell or nn.LSTMCell",
    "RReLU": "use nn.LeakyReLU",
    "Softmax2d": "use nn.Softmax(dim=-3)",
    "SyncBatchNorm": "use nn.BatchNorm2d",
    "Tanhshrink": "use x - F.tanh(x)",
    "functional": "import it as `from autodiff_gen import functional as F`",
    "utils": "Model(clip_grad_norm=..., clip_grad_value=...) clips gradients; there is no other utility",
}
