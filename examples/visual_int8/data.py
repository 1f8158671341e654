"""Write the crops that main.c streams: python data.py --out samples.bin [--train N --epochs E]

The crops to learn from are of two quarters of all photographs in the light of the device, twice as many of each new
photograph as of a known one. The crops to recognise follow, of the other quarters: the first half of the new
photographs, the second of the known ones. A record is 96 x 96 pixels of 3 bytes, then the number of the photograph.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from crops import LEARNED, NEW, OTHERS, by_lamp, cut, photographs

from autodiff_gen.datasets import samples
from autodiff_gen.errors import DataError

FLASH = 8, 4  # crops to learn from and to recognise that 1 MB of flash has room for, beside the network


def main():
    parser = argparse.ArgumentParser(description="Write the crops that the firmware learns from.")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="file to write: samples.bin, or a .c file for the flash, with at most {} and {} crops".format(
            *FLASH
        ),
    )
    parser.add_argument("--train", type=int, default=120, help="crops to learn from (default: 120)")
    parser.add_argument(
        "--test", type=int, default=80, help="crops to recognise, half of known photographs (default: 80)"
    )
    parser.add_argument("--epochs", type=int, default=2, help="times to go through the crops (default: 2)")
    parser.add_argument("--few", action="store_true", help="for a slow core: 48 and 20 crops, one epoch")
    if parser.parse_known_args()[0].few:
        parser.set_defaults(train=48, test=20, epochs=1)
    args = parser.parse_args()
    for name, least in (("train", 1), ("test", 2), ("epochs", 1)):
        if not least <= getattr(args, name) <= 1000:
            print(
                f"error: --{name} {getattr(args, name)}: must be between {least} and 1000",
                file=sys.stderr,
            )
            return 1
    if args.out.suffix == ".c":
        args.train, args.test = min(args.train, FLASH[0]), min(args.test, FLASH[1])
    photos = photographs()[1]
    known, half = len(photos) - NEW, args.test // 2
    rng = np.random.default_rng(4)
    each = np.concatenate([np.arange(len(photos)), np.arange(known, len(photos))])
    learned = np.concatenate([rng.permutation(each) for _ in range(0, args.train, len(each))])[: args.train]
    tested = np.concatenate([known + np.arange(half) % NEW, np.arange(args.test - half) % known])
    records = np.concatenate(
        [
            cut(photos, learned, LEARNED, by_lamp, rng),
            cut(photos, tested, OTHERS, by_lamp, np.random.default_rng(5)),
        ]
    ).reshape(args.train + args.test, -1)
    numbers = np.concatenate([learned, tested]).astype(np.uint8)
    made = samples.from_arrays(records, numbers, train=args.train, epochs=args.epochs)
    try:
        data = samples.to_c(made).encode() if args.out.suffix == ".c" else made.to_bytes()
        samples.write(args.out, data)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"crops of photographs: {made.train:,} to learn from, {made.test:,} to recognise")
    return 0


if __name__ == "__main__":
    sys.exit(main())
