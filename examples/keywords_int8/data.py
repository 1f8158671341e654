"""Write the words that main.c streams: python data.py --out samples.bin [--train N --epochs E]

The device learns from words of the new voice, new words among them. The test words follow, the first half by the
new voice, the second by voices that are not in the training data of the network. A record is 49 frames of 10 bands, one
byte each, then the number of the word.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from autodiff_gen.datasets import samples
from autodiff_gen.errors import DataError

TEST = 80  # words of the new voice, and of others


def main():
    parser = argparse.ArgumentParser(description="Write the words that the firmware learns from.")
    parser.add_argument(
        "--out", type=Path, required=True, help="file to write: samples.bin, or a .c file for the flash"
    )
    parser.add_argument(
        "--train", type=int, default=100, help="words to learn from, at most 120 (default: 100)"
    )
    parser.add_argument(
        "--test", type=int, default=2 * TEST, help=f"words to recognise, half by others (default: {2 * TEST})"
    )
    parser.add_argument("--epochs", type=int, default=4, help="times to go through the words (default: 4)")
    parser.add_argument("--few", action="store_true", help="for a slow core: 60 and 40 words")
    if parser.parse_known_args()[0].few:
        parser.set_defaults(train=60, test=40)
    args = parser.parse_args()
    words = np.load(Path(__file__).with_name("words.npz"))
    most = len(words["new"]) - TEST
    for name, least, largest in (("train", 1, most), ("test", 2, 2 * TEST), ("epochs", 1, 1000)):
        if not least <= getattr(args, name) <= largest:
            print(
                f"error: --{name} {getattr(args, name)}: must be between {least} and {largest}",
                file=sys.stderr,
            )
            return 1
    if args.test % 2:
        print(f"error: --test {args.test}: must be even, half are by others", file=sys.stderr)
        return 1
    half = args.test // 2
    parts = [("new", slice(args.train)), ("new", slice(most, most + half)), ("others", slice(half))]
    records = np.concatenate([words[name][some] for name, some in parts])
    numbers = np.concatenate([words[f"{name}_label"][some] for name, some in parts])
    made = samples.from_arrays(records, numbers, train=args.train, epochs=args.epochs, divisor=64, zero=128)
    try:
        data = samples.to_c(made).encode() if args.out.suffix == ".c" else made.to_bytes()
        samples.write(args.out, data)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"words: by espeak-ng: {made.train:,} to learn from, {made.test:,} to recognise")
    return 0


if __name__ == "__main__":
    sys.exit(main())
