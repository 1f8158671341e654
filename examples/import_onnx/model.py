"""A network of Keras, as autodiff-gen import wrote it from net.onnx; the learning rate was edited. Images are [n, 16,
16, 1]."""

from pathlib import Path

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim

FOLDER = Path(__file__).parent


class Network(nn.Module):
    def __init__(self, conv2d, conv2d_1, dense):
        super().__init__()
        self.conv2d = conv2d
        self.conv2d_1 = conv2d_1
        self.dense = dense

    def forward(self, x):
        x = F.permute(x, (0, 3, 1, 2))
        x = self.conv2d(x)
        x = F.relu(x)
        x = F.max_pool2d(x, 2)
        x = self.conv2d_1(x)
        x = F.relu(x)
        x = F.max_pool2d(x, 2)
        x = F.adaptive_avg_pool2d(x, 1)
        x = F.squeeze(x, (2, 3))
        return self.dense(x)


net = Network(
    conv2d=nn.Conv2d(1, 8, 3, padding=1),
    conv2d_1=nn.Conv2d(8, 16, 3, padding=1),
    dense=nn.Linear(16, 4),
)

net.load_state_dict(ag.load_arrays(FOLDER / "weights.npz"))

model = ag.Model.supervised(
    net, input=(1, 16, 16, 1), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.03)
)
