"""Draw the loss of the example mnist, by the generated C and by PyTorch from the same weights:

    .venv/bin/python docs/images/loss.py > docs/images/loss.svg

The C has the reference kernels on the host, whose losses agree with the boards to the last bit.
"""

import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from autodiff_gen import datasets  # noqa: E402
from autodiff_gen.model.loader import load_file  # noqa: E402
from autodiff_gen.report.loss_picture import Curve, Panel, loss_picture  # noqa: E402

EPOCHS, MEAN_OF = 3, 200  # passes over the digits; a point is the mean of so many steps


def losses() -> tuple[np.ndarray, np.ndarray, int]:
    """The loss of each step by the generated C and by PyTorch, and the number of digits."""
    digits, count = datasets.load_digits().split()
    images = digits.images[:count].reshape(-1, 784).astype(np.float32) / 255.0
    labels = digits.labels[:count].astype(np.int64)
    model = load_file("mnist").made
    trainer = model.on_host()
    weights = [torch.tensor(w, requires_grad=True) for w in trainer.state_dict().values()]
    ours, theirs = [], []
    for k in [*range(count)] * EPOCHS:
        x, y = images[k : k + 1], labels[k : k + 1]
        ours.append(trainer.train_step(x, y))
        scores = torch.sigmoid(torch.from_numpy(x) @ weights[0].T) @ weights[1].T
        loss = torch.nn.functional.cross_entropy(scores, torch.from_numpy(y))
        loss.backward()
        theirs.append(loss.item())
        with torch.no_grad():
            for w in weights:
                w -= model.default_lr * w.grad
                w.grad = None
    return np.array(ours), np.array(theirs), count


def means(values: np.ndarray) -> np.ndarray:
    """The mean of each MEAN_OF steps."""
    return values.reshape(-1, MEAN_OF).mean(1)


def svg() -> str:
    """The picture; its colours follow the scheme of the page."""
    ours, theirs, count = losses()
    both = [means(ours), means(theirs)]
    apart = float(np.max(np.abs(both[0] - both[1]) / both[1]))
    curves = [
        Curve(name, [(float((k + 1) * MEAN_OF), float(y)) for k, y in enumerate(values)])
        for name, values in zip(("generated C", "PyTorch"), both, strict=True)
    ]
    title = f"Loss of 784-32-10 on {count:,} digits, mean of {MEAN_OF} steps"
    told = f"{title}; largest relative difference of a point: {apart:.0e}"
    return loss_picture(f"{title}, by the generated C and by PyTorch", [Panel(told, "training step", curves)])


if __name__ == "__main__":
    sys.stdout.write(svg())
