"""Write the images that main.c streams: python data.py --out samples.bin [--train N --test N --epochs E]

The images are synthetic surfaces in a random light, with noise: grooves that are horizontal, vertical, or oblique, and
a grid of holes, of a random width and place. A record is 16 x 16 bytes, then the number of the surface.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from autodiff_gen.datasets import samples
from autodiff_gen.errors import DataError

SIDE = 16


def image(rng, surface):
    """uint8[SIDE * SIDE]."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float64)
    rate = 2 * np.pi / rng.uniform(3.5, 6.0)
    down, across = (np.sin(rate * axis + rng.uniform(0, 2 * np.pi)) for axis in (y, x))
    oblique = np.sin(rate * 0.7 * (x + y) + rng.uniform(0, 2 * np.pi))
    height = (down, across, oblique, 1.4 * np.maximum(down, 0) * np.maximum(across, 0) - 0.5)[surface]
    light = rng.uniform(90, 160) + rng.uniform(20, 60) * height + rng.normal(scale=18, size=height.shape)
    return np.clip(np.round(light), 0, 255).astype(np.uint8).reshape(-1)


def main():
    parser = argparse.ArgumentParser(description="Write the images that the firmware learns from.")
    parser.add_argument(
        "--out", type=Path, required=True, help="file to write: samples.bin, or a .c file for the flash"
    )
    parser.add_argument("--train", type=int, default=300, help="images to learn from (default: 300)")
    parser.add_argument("--test", type=int, default=200, help="images to recognise (default: 200)")
    parser.add_argument("--epochs", type=int, default=4, help="times to go through the images (default: 4)")
    parser.add_argument("--few", action="store_true", help="for a slow core: 200 and 50 images")
    if parser.parse_known_args()[0].few:
        parser.set_defaults(train=200, test=50)
    args = parser.parse_args()
    for name in ("train", "test", "epochs"):
        if getattr(args, name) < 1:
            print(f"error: --{name} {getattr(args, name)}: must be at least 1", file=sys.stderr)
            return 1
    rng = np.random.default_rng(1)
    surfaces = rng.integers(0, 4, args.train + args.test)
    images = np.stack([image(rng, surface) for surface in surfaces])
    made = samples.from_arrays(
        images, surfaces.astype(np.uint8), train=args.train, epochs=args.epochs, divisor=64, zero=128
    )
    try:
        data = samples.to_c(made).encode() if args.out.suffix == ".c" else made.to_bytes()
        samples.write(args.out, data)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"images: made by NumPy: {made.train:,} to learn from, {made.test:,} to recognise")
    return 0


if __name__ == "__main__":
    sys.exit(main())
