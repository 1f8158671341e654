"""Write the words that main.c streams: python data.py --out samples.bin [--train N --test N --epochs E --speaker S]

The training words are by a new speaker. The test words follow, the first half by the new speaker, the second by
others who are not in the training data of the network. A record is 49 frames of 10 bands, one byte each, then the
number of the word.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from words import adults, child, spoken_by

from autodiff_gen.datasets import samples
from autodiff_gen.errors import DataError


def main():
    parser = argparse.ArgumentParser(description="Write the words that the firmware learns from.")
    parser.add_argument(
        "--out", type=Path, required=True, help="file to write: samples.bin, or a .c file for the flash"
    )
    parser.add_argument("--train", type=int, default=100, help="words to learn from (default: 100)")
    parser.add_argument(
        "--test", type=int, default=200, help="words to recognise, half by others (default: 200)"
    )
    parser.add_argument(
        "--epochs", type=int, default=4, help="times to go through the words to learn (default: 4)"
    )
    parser.add_argument("--speaker", type=int, default=6, help="which new speaker: 0, 1, ... (default: 6)")
    parser.add_argument("--few", action="store_true", help="for a slow core: 60 and 40 words")
    if parser.parse_known_args()[0].few:
        parser.set_defaults(train=60, test=40)
    args = parser.parse_args()
    for name, least in (("train", 1), ("test", 2), ("epochs", 1), ("speaker", 0)):
        if getattr(args, name) < least:
            print(f"error: --{name} {getattr(args, name)}: must be at least {least}", file=sys.stderr)
            return 1
    if args.test % 2:
        print(f"error: --test {args.test}: must be even, half are by others", file=sys.stderr)
        return 1
    rng = np.random.default_rng(args.speaker)
    new, others = [child(rng)], adults(rng, 12)
    parts = [(new, args.train), (new, args.test // 2), (others, args.test // 2)]
    words, numbers = map(np.concatenate, zip(*(spoken_by(rng, *part) for part in parts), strict=True))
    made = samples.from_arrays(words, numbers, train=args.train, epochs=args.epochs, divisor=64, zero=128)
    try:
        data = samples.to_c(made).encode() if args.out.suffix == ".c" else made.to_bytes()
        samples.write(args.out, data)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"words: made by NumPy: {made.train:,} to learn from, {made.test:,} to recognise")
    return 0


if __name__ == "__main__":
    sys.exit(main())
