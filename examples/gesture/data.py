"""Write the motions that main.c streams: python data.py --out samples.bin [--train N --test N --epochs E]

The motions are synthetic: a hand holds the device at a random tilt and rests, waves, shakes, or draws circles in
either direction, at a random speed and size, with tremor. A record has the 8-bit output of a 4 g accelerometer, 32
samples of 3 axes, where 128 is 0 g and 32 units are 1 g; then the number of the gesture.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from autodiff_gen.datasets import samples
from autodiff_gen.errors import DataError

RATE, TIMES = 16.0, 32  # Hz
REST, WAVE, SHAKE, LEFT, RIGHT = range(5)


def held(rng):
    """The tilt of the device: a rotation float[3, 3] by up to about 30 degrees about each axis."""
    rotation = np.eye(3)
    for axis, angle in enumerate(rng.uniform(-0.5, 0.5, 3)):
        a, b = (axis + 1) % 3, (axis + 2) % 3
        about = np.eye(3)
        about[[a, a, b, b], [a, b, a, b]] = np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)
        rotation = rotation @ about
    return rotation


def motion(rng, gesture):
    """Acceleration in g, float[TIMES, 3]: x to the right, y forward, z up."""
    t = np.arange(TIMES) / RATE
    hertz = rng.uniform(4.0, 6.0) if gesture == SHAKE else rng.uniform(1.0, 2.2)
    uneven = 0.03 * np.sin(2 * np.pi * rng.uniform(0.3, 0.8) * t)
    angle = 2 * np.pi * (hertz * (t + uneven) + rng.uniform())
    across = {REST: 0.0, WAVE: np.sin(angle), SHAKE: np.sin(angle), LEFT: np.cos(angle), RIGHT: np.cos(angle)}
    up = {REST: 0.0, WAVE: 0.15 * np.cos(2 * angle), SHAKE: 0.0, LEFT: np.sin(angle), RIGHT: -np.sin(angle)}
    swell = np.interp(
        t, [0.0, rng.uniform(0.2, 0.8), 2.0], [rng.uniform(0.2, 1.0), 1.0, rng.uniform(0.4, 1.0)]
    )
    size = rng.uniform(0.3, 1.0) * swell
    moved = np.zeros((TIMES, 3))
    moved[:, 0] = size * across[gesture]
    moved[:, 2] = 1.0 + size * up[gesture] * rng.uniform(0.6, 1.1)
    return moved @ held(rng).T + rng.normal(scale=rng.uniform(0.02, 0.12), size=moved.shape)


def record(rng, gesture):
    """The output of the accelerometer, uint8[TIMES * 3]."""
    return np.clip(np.round(128.0 + 32.0 * motion(rng, gesture)), 0, 255).astype(np.uint8).reshape(-1)


def recorded(count):
    """Records of random gestures uint8[count, TIMES * 3], and their numbers."""
    rng = np.random.default_rng(1)
    gestures = rng.integers(0, 5, count)
    return np.stack([record(rng, gesture) for gesture in gestures]), gestures.astype(np.uint8)


def dataset(train=800, test=400):
    """Motions for `autodiff-gen train` and `fleet`, in g as main.c has them."""
    motions, gestures = recorded(train + test)
    x = (motions.reshape(-1, TIMES, 3).astype(np.float32) - 128) / 32
    return {
        "x": x[:train],
        "label": gestures[:train],
        "test_x": x[train:],
        "test_label": gestures[train:],
    }


def main():
    parser = argparse.ArgumentParser(description="Write the motions that the firmware learns from.")
    parser.add_argument(
        "--out", type=Path, required=True, help="file to write: samples.bin, or a .c file for the flash"
    )
    parser.add_argument("--train", type=int, default=800, help="motions to learn from (default: 800)")
    parser.add_argument("--test", type=int, default=400, help="motions to recognise (default: 400)")
    parser.add_argument(
        "--epochs", type=int, default=8, help="times to go through the motions to learn (default: 8)"
    )
    parser.add_argument("--few", action="store_true", help="for a slow core: 300 and 100 motions")
    if parser.parse_known_args()[0].few:
        parser.set_defaults(train=300, test=100)
    args = parser.parse_args()
    for name in ("train", "test", "epochs"):
        if getattr(args, name) < 1:
            print(f"error: --{name} {getattr(args, name)}: must be at least 1", file=sys.stderr)
            return 1
    motions, gestures = recorded(args.train + args.test)
    made = samples.from_arrays(motions, gestures, train=args.train, epochs=args.epochs, divisor=32, zero=128)
    try:
        data = samples.to_c(made).encode() if args.out.suffix == ".c" else made.to_bytes()
        samples.write(args.out, data)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"motions: made by NumPy: {made.train:,} to learn from, {made.test:,} to recognise")
    return 0


if __name__ == "__main__":
    sys.exit(main())
