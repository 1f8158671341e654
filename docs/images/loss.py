"""Draw the loss of the example mnist, by the generated C and by PyTorch from the same weights:

    .venv/bin/python docs/images/loss.py > docs/images/loss.svg

The C has the reference kernels on the host, whose losses agree with the boards to the last bit.
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from autodiff_gen import datasets  # noqa: E402
from autodiff_gen.model.loader import load_file  # noqa: E402

EPOCHS, MEAN_OF = 3, 200  # passes over the digits; steps whose mean is a point
WIDTH, HEIGHT, LEFT, TOP = 640.0, 250.0, 56.0, 44.0


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
    top = math.ceil(max(map(np.max, both)) * 2) / 2

    def curve(values: np.ndarray) -> str:
        xs = LEFT + (np.arange(len(values)) + 0.5) / len(values) * WIDTH
        ys = TOP + HEIGHT * (1 - values / top)
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))

    def text(x: float, y: float, words: str, more: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{words}</text>'

    floor, key = TOP + HEIGHT, LEFT + 260
    title = f"Loss of 784-32-10 on {count:,} digits, mean of {MEAN_OF} steps"
    parts = [text(LEFT, 18, title, ' class="h"')]
    for tick in np.arange(0, top + 0.1, 0.5):
        y = TOP + HEIGHT * (1 - tick / top)
        parts.append(f'<path class="g" d="M{LEFT} {y:.1f}h{WIDTH}"/>')
        parts.append(text(LEFT - 8, y + 4, f"{tick:g}", ' text-anchor="end"'))
    for epoch in range(EPOCHS + 1):
        anchor = "end" if epoch == EPOCHS else "middle"
        x = LEFT + WIDTH * epoch / EPOCHS
        parts.append(text(x, floor + 20, f"{epoch * count:,}", f' text-anchor="{anchor}"'))
    parts.append(text(LEFT + WIDTH / 2, floor + 40, "training step", ' text-anchor="middle"'))
    for kind, values, name, y in (("c", both[0], "generated C", 22), ("t", both[1], "PyTorch", 44)):
        parts.append(
            f'<path class="{kind}" d="{curve(values)}"/><path class="{kind}" d="M{key} {TOP + y}h34"/>'
        )
        parts.append(text(key + 44, TOP + y + 4, name))
    parts.append(text(key, TOP + 70, f"largest relative difference of a point: {apart:.0e}"))
    opening = f'viewBox="0 0 {LEFT + WIDTH + 20:.0f} {floor + 48:.0f}" role="img"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {opening}>
<title>{title}, by the generated C and by PyTorch</title>
<style>text {{ font: 13px ui-sans-serif, "DejaVu Sans", Helvetica, Arial, sans-serif; fill: #24292f }}
rect {{ fill: #ffffff }} .h {{ font-weight: bold }} .g {{ stroke: #d0d7de; fill: none }}
.c {{ stroke: #1e6fd0; stroke-width: 2.5; fill: none }}
.t {{ stroke: #e8590c; stroke-width: 2.5; stroke-dasharray: 3 6; fill: none }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #d7dde8 }} .g {{ stroke: #3d444d }} rect {{ fill: #1d222c }} }}</style>
<rect width="100%" height="100%" rx="6"/>
{chr(10).join(parts)}
</svg>
"""


if __name__ == "__main__":
    sys.stdout.write(svg())
