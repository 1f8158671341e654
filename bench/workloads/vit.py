"""A small vision transformer (Dosovitskiy et al. 2021): 3 x 32 x 32 in 64 patches, four blocks of width 64, 10 classes;
the mean of all tokens is classified."""

from __future__ import annotations

from typing import Any

from common import Task

PATCH, TOKENS, WIDTH, HEADS, BLOCKS = 4, 64, 64, 4, 4


def network(nn: Any) -> Any:
    class ViT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
            self.position = nn.Embedding(TOKENS, WIDTH)
            options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
            self.blocks = nn.Sequential(
                *(nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, **options) for _ in range(BLOCKS))
            )
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, 10)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2) + self.position.weight
            return self.head(self.norm(self.blocks(x)).mean(1))

    return ViT()


TASK = Task(network, (3, 32, 32), classes=10)
model, batch = TASK.model(1), TASK.batches(1)
