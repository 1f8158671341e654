"""Gestures: two seconds of a 3-axis accelerometer at 16 Hz -> GRU with 20 units -> 5 classes. Batches of up to 4
windows; Adam with a cosine learning rate and the gradient clipped by norm."""

import autodiff_gen as ag
from autodiff_gen import nn, optim

TIMES, AXES, UNITS, GESTURES = 32, 3, 20, 5
STEPS = 1600  # training steps until the learning rate is 0


class Recogniser(nn.Module):
    """The last state of the GRU is classified by a linear layer."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(AXES, UNITS, batch_first=True)
        self.head = nn.Linear(UNITS, GESTURES)

    def forward(self, x):
        _, last = self.gru(x)
        return self.head(last[0])


model = ag.Model.supervised(
    Recogniser(),
    input=(4, TIMES, AXES),
    loss=nn.CrossEntropyLoss(),
    optimizer=optim.Adam(lr=5e-3),
    schedule=optim.lr_scheduler.CosineAnnealingLR(T_max=STEPS),
    clip_grad_norm=1.0,
)
