"""Write weights.npz: python pretrain.py [--steps S --out FILE]

The network learns to tell from which of eight photographs a crop is, in one of many lights. It is trained in float with
generated C compiled for the host, with the host's kernels, since `ref` takes almost four times as long: another machine
may give other weights. 1,500 steps take eight minutes of one core. The weights are stored as float16.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from crops import LEARNED, NEW, OTHERS, SIZE, by_daylight, cut, photographs
from net import FEATURES, Backbone, network_input

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.errors import AutodiffError

BATCH = 32
TEST = 4 * BATCH
LINES = 8  # of the output


def main():
    parser = argparse.ArgumentParser(description="Train the network on crops of eight photographs.")
    parser.add_argument("--steps", type=int, default=1500, help=f"of {BATCH} crops each (default: 1500)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("weights.npz"))
    args = parser.parse_args()
    _, photos = photographs()
    known = len(photos) - NEW
    net = nn.Sequential(Backbone(), nn.Linear(FEATURES, known))
    model = ag.Model.supervised(
        net,
        input=(BATCH, 3, SIZE, SIZE),
        loss=nn.CrossEntropyLoss(),
        optimizer=optim.Adam(),
        schedule=optim.lr_scheduler.OneCycleLR(4e-3, total_steps=args.steps, cycle_momentum=False),
    )
    try:
        trainer = model.on_host(kernels="host,ref")
    except AutodiffError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rng = np.random.default_rng(1)
    numbers = np.arange(TEST) % known
    test = network_input(cut(photos, numbers, OTHERS, by_daylight, np.random.default_rng(2)))
    losses = []
    for step in range(1, args.steps + 1):
        label = rng.integers(known, size=BATCH).astype(np.uint8)
        x = network_input(cut(photos, label, LEARNED, by_daylight, rng))
        losses.append(trainer.train_step(x, label))
        if step % -(-args.steps // LINES) == 0 or step == args.steps:
            scores = np.concatenate([trainer.predict(part) for part in np.split(test, TEST // BATCH)])
            right = 100 * np.mean(scores.argmax(1) == numbers)
            print(
                f"step {step}: mean loss {np.mean(losses):.4f}, other parts of the photographs {right:.1f} %",
                flush=True,
            )
            losses = []
    names = [name for name, _ in (*net.named_parameters(), *net.named_buffers())]
    state = trainer.state_dict()
    np.savez_compressed(args.out, **{name: state[name].astype(np.float16) for name in names})
    return 0


if __name__ == "__main__":
    sys.exit(main())
