"""Write weights.npz and words.npz: python pretrain.py [--epochs E --out FOLDER]

The network learns eight words from ninety voices, in float, with generated C compiled for the host; its kernels, `ref`,
give the same weights on every machine. words.npz has the data for the device: words of a new voice, two new ones among
them, words of voices that are not in the training data, and words for the calibration of the quantised network.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from net import CHANNELS, Backbone, network_input
from speech import KNOWN, NEW_VOICE, WORDS, spoken_by, voices

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.errors import AutodiffError

BATCH = 16


def main():
    parser = argparse.ArgumentParser(description="Train the keyword spotter on the words of many voices.")
    parser.add_argument("--epochs", type=int, default=10, help="times to go through the words (default: 10)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder of the files")
    args = parser.parse_args()
    try:
        x, label = spoken_by(0, voices()[:90], KNOWN, 3)
        others, said = spoken_by(1, voices()[90:], KNOWN, 1)
        new, new_label = spoken_by(2, [NEW_VOICE], WORDS, 20)
    except FileNotFoundError:
        print("error: espeak-ng is not installed; run: sudo apt-get install espeak-ng", file=sys.stderr)
        return 1
    net = nn.Sequential(Backbone(), nn.Linear(CHANNELS, len(KNOWN)))
    steps = -(-len(x) // BATCH)
    model = ag.Model.supervised(
        net,
        input=(BATCH, 1, 49, 10),
        loss=nn.CrossEntropyLoss(),
        optimizer=optim.Adam(),
        schedule=optim.lr_scheduler.OneCycleLR(
            6e-3, epochs=args.epochs, steps_per_epoch=steps, cycle_momentum=False
        ),
    )
    try:
        trainer = model.on_host()
    except AutodiffError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rng = np.random.default_rng(1)
    for epoch in range(args.epochs):
        parts = np.split(rng.permutation(len(x)), range(BATCH, len(x), BATCH))
        losses = [trainer.train_step(network_input(x[part]), label[part]) for part in parts]
        scores = [
            trainer.predict(network_input(part))
            for part in np.split(others, range(BATCH, len(others), BATCH))
        ]
        right = np.mean(np.concatenate(scores).argmax(1) == said)
        print(
            f"epoch {epoch + 1}: mean loss {np.mean(losses):.4f}, other voices {100 * right:.1f} %",
            flush=True,
        )
    names = [name for name, _ in (*net.named_parameters(), *net.named_buffers())]
    np.savez(args.out / "weights.npz", **{name: trainer.state_dict()[name] for name in names})
    np.savez_compressed(
        args.out / "words.npz",
        new=new,
        new_label=new_label,
        others=others[:80],
        others_label=said[:80],
        calibration=x[:64],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
