"""Write net.pt2, a network of PyTorch with its weights: python export.py [--out net.pt2]

MobileNetV2 of width 0.35, with the module names of torchvision, which knows eight photographs: the weights come from
examples/visual_int8. All but the last block, the last layer and the classifier is frozen, and running statistics are
fixed, so that one crop at a time can train the rest. It needs PyTorch; `autodiff-gen import net.pt2` and the build do
not.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

WEIGHTS = Path(__file__).parents[1] / "visual_int8" / "weights.npz"
CLASSES = 10  # eight photographs, and two that the device learns
SETTINGS = (
    (1, 8, 1, 1),
    (6, 8, 2, 2),
    (6, 16, 3, 2),
    (6, 24, 4, 2),
    (6, 32, 3, 1),
    (6, 56, 3, 2),
    (6, 112, 1, 1),
)


class Conv2dNormActivation(nn.Sequential):
    def __init__(self, inputs, outputs, kernel=3, stride=1, groups=1):
        super().__init__(
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU6(inplace=True),
        )


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, stride, expand_ratio):
        super().__init__()
        hidden = inputs * expand_ratio
        self.use_res_connect = stride == 1 and inputs == outputs
        expand = [Conv2dNormActivation(inputs, hidden, 1)] if expand_ratio > 1 else []
        self.conv = nn.Sequential(
            *expand,
            Conv2dNormActivation(hidden, hidden, 3, stride, hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x):
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        features, channels = [Conv2dNormActivation(3, 16, stride=2)], 16
        for expand_ratio, outputs, count, stride in SETTINGS:
            for k in range(count):
                features.append(InvertedResidual(channels, outputs, 1 if k else stride, expand_ratio))
                channels = outputs
        self.features = nn.Sequential(*features, Conv2dNormActivation(channels, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, num_classes))

    def forward(self, x):
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, (1, 1))
        return self.classifier(torch.flatten(x, 1))


def network():
    """The network with its weights and modes."""
    net = MobileNetV2(CLASSES)
    with np.load(WEIGHTS) as file:
        theirs = {name: torch.from_numpy(file[name].astype(np.float32)) for name in file.files}
    new = CLASSES - len(theirs["1.bias"])
    theirs["1.weight"] = nn.functional.pad(theirs["1.weight"], (0, 0, 0, new))
    theirs["1.bias"] = nn.functional.pad(theirs["1.bias"], (0, new))
    layers, own = (
        list(dict.fromkeys(n.rpartition(".")[0] for n in names)) for names in (theirs, net.state_dict())
    )
    path = dict(zip(layers, own, strict=True))
    net.load_state_dict(
        {f"{path[n.rpartition('.')[0]]}.{n.rpartition('.')[2]}": v for n, v in theirs.items()}
    )
    net.eval().requires_grad_(False)
    net.features[17:].requires_grad_(True)
    net.classifier.requires_grad_(True)
    return net


def main():
    parser = argparse.ArgumentParser(description="Write a network of PyTorch.")
    parser.add_argument("--out", type=Path, default=Path("net.pt2"))
    out = parser.parse_args().out
    batch = {0: torch.export.Dim("batch", min=1, max=64)}
    example = torch.zeros(2, 3, 96, 96)
    torch.export.save(torch.export.export(network(), (example,), dynamic_shapes=(batch,)), out)


if __name__ == "__main__":
    main()
