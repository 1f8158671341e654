"""Write the digits that main.c streams: python data.py --out samples.bin [--train N --test N --epochs E]"""

import argparse
import sys
from pathlib import Path

from autodiff_gen import datasets
from autodiff_gen.datasets import samples
from autodiff_gen.errors import DataError


def dataset() -> dict[str, object]:
    """Digits for `autodiff-gen train`, the same as in samples.bin, by the names of the model's input and target."""
    digits, train = datasets.load_digits().split()
    return {
        "x": digits.images[:train].reshape(-1, 784),
        "label": digits.labels[:train],
        "test_x": digits.images[train:].reshape(-1, 784),
        "test_label": digits.labels[train:],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the digits that the firmware trains on.")
    parser.add_argument(
        "--out", type=Path, required=True, help="file to write: samples.bin, or a .c file for the flash"
    )
    parser.add_argument("--train", type=int, help="digits to train on (default: four fifths, 8,000 of MNIST)")
    parser.add_argument("--test", type=int, help="digits to test on (default: a fifth, 2,000 of MNIST)")
    parser.add_argument(
        "--epochs", type=int, default=3, help="times to go through the training digits (default: 3)"
    )
    parser.add_argument(
        "--few", action="store_true", help="for a slow core: 1,000 to train on, 500 to test on"
    )
    if parser.parse_known_args()[0].few:
        parser.set_defaults(train=1000, test=500)
    args = parser.parse_args()
    try:
        if args.epochs < 1:
            raise DataError(f"--epochs {args.epochs}: must be at least 1")
        digits, train = datasets.load_digits().split(args.train, args.test)
        made = samples.from_arrays(digits.images, digits.labels, train=train, epochs=args.epochs)
        data = samples.to_c(made).encode() if args.out.suffix == ".c" else made.to_bytes()
        samples.write(args.out, data)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"digits: {digits.source}: {made.train:,} to train, {made.test:,} to test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
