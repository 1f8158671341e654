"""Four cards, each with a colour and a number, and a question: which number has this colour? One transformer encoder
block answers it; a linear model, for comparison, cannot. Batches of up to 8 questions, AdamW."""

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim

COLOURS, NUMBERS, CARDS, WIDTH = 6, 4, 4, 16

# Four cards and the question: a colour, a number (of cards), and 1 for the question, one-hot.
x = ag.Input("x", (8, CARDS + 1, COLOURS + NUMBERS + 1), batch_axis=0)
label = ag.Input("label", (8,), "u8", batch_axis=0)


class Reader(nn.Module):
    """The number is read from the position of the question after attention."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(COLOURS + NUMBERS + 1, WIDTH)
        self.block = nn.TransformerEncoderLayer(
            WIDTH,
            nhead=2,
            dim_feedforward=32,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, NUMBERS)

    def forward(self, x):
        return self.head(self.norm(self.block(self.embed(x))[:, -1]))


class Linear(nn.Module):
    """A linear model of all entries of all cards and of the question."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear((CARDS + 1) * (COLOURS + NUMBERS + 1), NUMBERS)

    def forward(self, x):
        return self.linear(F.flatten(x, 1))


scores, linear = Reader()(x), Linear()(x)
loss = F.cross_entropy(scores, label)
# The two share no parameter, so each trains independently of the other.
model = ag.Model(
    [x],
    [label],
    {"scores": scores, "linear": linear},
    loss + F.cross_entropy(linear, label),
    optim.AdamW(lr=3e-3),
)
