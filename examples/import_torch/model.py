"""MobileNetV2 of PyTorch, as autodiff-gen import wrote it from the file of export.py; after the weights the model is
edited: its input is the bytes of a camera. The last block, the last layer and the classifier train."""

from pathlib import Path

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim

FOLDER = Path(__file__).parent


class InvertedResidual(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, x):
        return self.conv(x)


class InvertedResidual2(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, x):
        y = self.conv(x)
        return x + y


class MobileNetV2(nn.Module):
    def __init__(self, features, classifier):
        super().__init__()
        self.features = features
        self.classifier = classifier

    def forward(self, x):
        x = self.features(x)
        x = F.adaptive_avg_pool2d(x, (1, 1))
        x = F.flatten(x, start_dim=1)
        return self.classifier(x)


net = MobileNetV2(
    features=nn.Sequential(
        nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU6(),
        ),
        InvertedResidual(
            conv=nn.Sequential(
                nn.Sequential(
                    nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False),
                    nn.BatchNorm2d(16),
                    nn.ReLU6(),
                ),
                nn.Conv2d(16, 8, 1, bias=False),
                nn.BatchNorm2d(8),
            ),
        ),
        InvertedResidual(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(8, 48, 1, bias=False), nn.BatchNorm2d(48), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(48, 48, 3, stride=2, padding=1, groups=48, bias=False),
                    nn.BatchNorm2d(48),
                    nn.ReLU6(),
                ),
                nn.Conv2d(48, 8, 1, bias=False),
                nn.BatchNorm2d(8),
            ),
        ),
        InvertedResidual2(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(8, 48, 1, bias=False), nn.BatchNorm2d(48), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(48, 48, 3, padding=1, groups=48, bias=False),
                    nn.BatchNorm2d(48),
                    nn.ReLU6(),
                ),
                nn.Conv2d(48, 8, 1, bias=False),
                nn.BatchNorm2d(8),
            ),
        ),
        InvertedResidual(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(8, 48, 1, bias=False), nn.BatchNorm2d(48), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(48, 48, 3, stride=2, padding=1, groups=48, bias=False),
                    nn.BatchNorm2d(48),
                    nn.ReLU6(),
                ),
                nn.Conv2d(48, 16, 1, bias=False),
                nn.BatchNorm2d(16),
            ),
        ),
        InvertedResidual2(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(16, 96, 1, bias=False), nn.BatchNorm2d(96), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(96, 96, 3, padding=1, groups=96, bias=False),
                    nn.BatchNorm2d(96),
                    nn.ReLU6(),
                ),
                nn.Conv2d(96, 16, 1, bias=False),
                nn.BatchNorm2d(16),
            ),
        ),
        InvertedResidual2(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(16, 96, 1, bias=False), nn.BatchNorm2d(96), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(96, 96, 3, padding=1, groups=96, bias=False),
                    nn.BatchNorm2d(96),
                    nn.ReLU6(),
                ),
                nn.Conv2d(96, 16, 1, bias=False),
                nn.BatchNorm2d(16),
            ),
        ),
        InvertedResidual(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(16, 96, 1, bias=False), nn.BatchNorm2d(96), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(96, 96, 3, stride=2, padding=1, groups=96, bias=False),
                    nn.BatchNorm2d(96),
                    nn.ReLU6(),
                ),
                nn.Conv2d(96, 24, 1, bias=False),
                nn.BatchNorm2d(24),
            ),
        ),
        InvertedResidual2(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(24, 144, 1, bias=False), nn.BatchNorm2d(144), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(144, 144, 3, padding=1, groups=144, bias=False),
                    nn.BatchNorm2d(144),
                    nn.ReLU6(),
                ),
                nn.Conv2d(144, 24, 1, bias=False),
                nn.BatchNorm2d(24),
            ),
        ),
        InvertedResidual2(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(24, 144, 1, bias=False), nn.BatchNorm2d(144), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(144, 144, 3, padding=1, groups=144, bias=False),
                    nn.BatchNorm2d(144),
                    nn.ReLU6(),
                ),
                nn.Conv2d(144, 24, 1, bias=False),
                nn.BatchNorm2d(24),
            ),
        ),
        InvertedResidual2(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(24, 144, 1, bias=False), nn.BatchNorm2d(144), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(144, 144, 3, padding=1, groups=144, bias=False),
                    nn.BatchNorm2d(144),
                    nn.ReLU6(),
                ),
                nn.Conv2d(144, 24, 1, bias=False),
                nn.BatchNorm2d(24),
            ),
        ),
        InvertedResidual(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(24, 144, 1, bias=False), nn.BatchNorm2d(144), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(144, 144, 3, padding=1, groups=144, bias=False),
                    nn.BatchNorm2d(144),
                    nn.ReLU6(),
                ),
                nn.Conv2d(144, 32, 1, bias=False),
                nn.BatchNorm2d(32),
            ),
        ),
        InvertedResidual2(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(32, 192, 1, bias=False), nn.BatchNorm2d(192), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(192, 192, 3, padding=1, groups=192, bias=False),
                    nn.BatchNorm2d(192),
                    nn.ReLU6(),
                ),
                nn.Conv2d(192, 32, 1, bias=False),
                nn.BatchNorm2d(32),
            ),
        ),
        InvertedResidual2(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(32, 192, 1, bias=False), nn.BatchNorm2d(192), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(192, 192, 3, padding=1, groups=192, bias=False),
                    nn.BatchNorm2d(192),
                    nn.ReLU6(),
                ),
                nn.Conv2d(192, 32, 1, bias=False),
                nn.BatchNorm2d(32),
            ),
        ),
        InvertedResidual(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(32, 192, 1, bias=False), nn.BatchNorm2d(192), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(192, 192, 3, stride=2, padding=1, groups=192, bias=False),
                    nn.BatchNorm2d(192),
                    nn.ReLU6(),
                ),
                nn.Conv2d(192, 56, 1, bias=False),
                nn.BatchNorm2d(56),
            ),
        ),
        InvertedResidual2(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(56, 336, 1, bias=False), nn.BatchNorm2d(336), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(336, 336, 3, padding=1, groups=336, bias=False),
                    nn.BatchNorm2d(336),
                    nn.ReLU6(),
                ),
                nn.Conv2d(336, 56, 1, bias=False),
                nn.BatchNorm2d(56),
            ),
        ),
        InvertedResidual2(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(56, 336, 1, bias=False), nn.BatchNorm2d(336), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(336, 336, 3, padding=1, groups=336, bias=False),
                    nn.BatchNorm2d(336),
                    nn.ReLU6(),
                ),
                nn.Conv2d(336, 56, 1, bias=False),
                nn.BatchNorm2d(56),
            ),
        ),
        InvertedResidual(
            conv=nn.Sequential(
                nn.Sequential(nn.Conv2d(56, 336, 1, bias=False), nn.BatchNorm2d(336), nn.ReLU6()),
                nn.Sequential(
                    nn.Conv2d(336, 336, 3, padding=1, groups=336, bias=False),
                    nn.BatchNorm2d(336),
                    nn.ReLU6(),
                ),
                nn.Conv2d(336, 112, 1, bias=False),
                nn.BatchNorm2d(112),
            ),
        ),
        nn.Sequential(nn.Conv2d(112, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()),
    ),
    classifier=nn.Sequential(nn.Dropout(p=0.2), nn.Linear(1280, 10)),
)
net.eval()
for module in net.features[:17]:
    module.requires_grad_(False)

weights = ag.load_arrays(FOLDER / "weights.npz")
net.load_state_dict({name: array.astype("float32") for name, array in weights.items()})

x = ag.Input("x", (1, 96, 96, 3), dtype="u8")
label = ag.Input("label", (1,), dtype="u8")
image = F.permute((x.to("f32") - 128.0) * (1 / 64), (0, 3, 1, 2))
scores = net(image)
model = ag.Model([x], [label], {"scores": scores}, nn.CrossEntropyLoss()(scores, label), optim.SGD(lr=0.005))
