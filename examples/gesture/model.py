"""Gestures: two seconds of a 3-axis accelerometer at 16 Hz -> GRU with 20 units -> 5 classes. Up to 4 windows at once;
Adam, whose learning rate falls along a cosine, with the gradient's length clipped."""

import autodiff_gen as ag
from autodiff_gen import nn, optim

TIMES, AXES, UNITS, GESTURES = 32, 3, 20, 5
STEPS = 1600  # of training, until the learning rate is 0


class Recogniser(nn.Module):
    """What the GRU remembers at the end of the window tells the gesture."""

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
