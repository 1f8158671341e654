"""Write weights.npz, the initial weights of the device: python pretrain.py [--train N --epochs E --out FILE]

All layers are trained on many speakers, with generated C compiled for the host, in one or two minutes. Its kernels,
`ref`, give the same weights on every machine.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from net import KeywordNet
from words import adults, features, spoken_by

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.errors import AutodiffError

BATCH = 16


def main():
    parser = argparse.ArgumentParser(description="Train the keyword spotter on the words of many speakers.")
    parser.add_argument("--train", type=int, default=3000, help="words to learn from (default: 3000)")
    parser.add_argument("--test", type=int, default=500, help="words to recognise (default: 500)")
    parser.add_argument("--epochs", type=int, default=8, help="times to go through the words (default: 8)")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).with_name("weights.npz"), help="file to write"
    )
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    x, label = spoken_by(rng, adults(rng, 24), args.train)
    others, said = spoken_by(rng, adults(rng, 12), args.test)
    model = ag.Model.supervised(
        KeywordNet(),
        input=(BATCH, 1, 49, 10),
        loss=nn.CrossEntropyLoss(),
        optimizer=optim.Adam(),
        schedule=optim.lr_scheduler.OneCycleLR(
            6e-3, epochs=args.epochs, steps_per_epoch=-(-args.train // BATCH), cycle_momentum=False
        ),
    )
    try:
        trainer = model.on_host()
    except AutodiffError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for epoch in range(args.epochs):
        losses = []
        order = rng.permutation(args.train)
        for part in np.split(order, range(BATCH, args.train, BATCH)):
            losses.append(trainer.train_step(features(x[part]), label[part]))
        scores = np.concatenate(
            [trainer.predict(features(p)) for p in np.array_split(others, -(-args.test // BATCH))]
        )
        right = np.mean(scores.argmax(1) == said)
        print(
            f"epoch {epoch + 1}: mean loss {np.mean(losses):.4f}, other speakers {100 * right:.1f} %",
            flush=True,
        )
    names = [name for name, _ in KeywordNet().named_parameters()]
    np.savez(args.out, **{name: trainer.state_dict()[name] for name in names})
    return 0


if __name__ == "__main__":
    sys.exit(main())
