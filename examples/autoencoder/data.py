"""Write the machine sounds that main.c streams: python data.py --out samples.bin [--train N --test N]

The sounds are synthetic: harmonics of the motor speed, amplitude modulation by the blades, and noise of the air. A
worn bearing adds clicks with a resonance of a few kHz. A record is five frames of 128 mel bands in dB, one byte each,
then its kind: 0 for a machine of the factory, 1 for the machine on site, 2 for the same with a worn bearing.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from autodiff_gen.datasets import samples
from autodiff_gen.errors import DataError

RATE, WINDOW, HOP, FRAMES, BANDS = 16000, 1024, 512, 5, 128
FACTORY, SITE, WORN = 0, 1, 2


def mel_filters():
    """Triangles float[BANDS, WINDOW / 2 + 1], evenly spaced on the mel scale from 0 to RATE / 2."""
    mels = np.linspace(0.0, 2595.0 * np.log10(1.0 + RATE / 2 / 700.0), BANDS + 2)
    edges = 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
    hertz = np.linspace(0.0, RATE / 2, WINDOW // 2 + 1)
    up = (hertz - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - hertz) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0.0, np.minimum(up, down))


def sound(rng, kind):
    """One piece of sound, float[samples]."""
    t = np.arange(WINDOW + HOP * (FRAMES - 1)) / RATE
    on_site = kind != FACTORY
    speed = rng.uniform(47.0, 53.0) if on_site else rng.uniform(24.0, 36.0)  # revolutions per second
    y = np.zeros_like(t)
    for k in range(1, 25):
        fall = 0.8 if on_site else 1.1
        y += k**-fall * rng.uniform(0.6, 1.0) * np.sin(2 * np.pi * k * speed * t + rng.uniform(0, 2 * np.pi))
    blades = 7 if on_site else 5
    y *= 1.0 + 0.3 * np.sin(2 * np.pi * blades * speed * t + rng.uniform(0, 2 * np.pi))
    y += air(rng, len(t), 0.5 if on_site else 0.25, 2500.0 if on_site else 900.0)
    if kind == WORN:
        clicks = np.zeros_like(t)
        clicks[
            (np.arange(rng.uniform(0, 1), t[-1] * speed * 3.6, 1.0) * RATE / (speed * 3.6)).astype(int)
        ] = 1.0
        ring = np.exp(-t[:256] * 900.0) * np.sin(2 * np.pi * rng.uniform(3200.0, 4200.0) * t[:256])
        y += rng.uniform(0.7, 1.8) * np.convolve(clicks, ring)[: len(t)]
    return y * rng.uniform(0.8, 1.25)


def air(rng, count, loudness, corner):
    """Noise with a low-pass spectrum above `corner` Hz."""
    spectrum = np.fft.rfft(rng.normal(size=count))
    hertz = np.fft.rfftfreq(count, 1.0 / RATE)
    return loudness * np.fft.irfft(spectrum / np.sqrt(1.0 + (hertz / corner) ** 2), count)


def record(rng, kind, filters):
    """Five frames of mel bands, uint8[640]: 0 is -60 dB or less, 255 is 40 dB or more."""
    y = sound(rng, kind)
    frames = np.stack([y[HOP * i : HOP * i + WINDOW] for i in range(FRAMES)]) * np.hanning(WINDOW)
    power = np.abs(np.fft.rfft(frames)) ** 2 @ filters.T / WINDOW
    return (
        np.clip(np.round((10.0 * np.log10(power + 1e-9) + 60.0) * 2.55), 0, 255).astype(np.uint8).reshape(-1)
    )


def main():
    parser = argparse.ArgumentParser(description="Write the machine sounds that the firmware learns from.")
    parser.add_argument(
        "--out", type=Path, required=True, help="file to write: samples.bin, or a .c file for the flash"
    )
    parser.add_argument(
        "--train", type=int, default=512, help="sounds to learn from, half of the factory (default: 512)"
    )
    parser.add_argument(
        "--test", type=int, default=256, help="sounds to judge, half of worn bearings (default: 256)"
    )
    parser.add_argument("--epochs", type=int, default=6, help="times to go through either half (default: 6)")
    parser.add_argument("--few", action="store_true", help="for a slow core: 128 and 64 sounds, 2 epochs")
    if parser.parse_known_args()[0].few:
        parser.set_defaults(train=128, test=64, epochs=2)
    args = parser.parse_args()
    for name in ("train", "test"):
        if getattr(args, name) < 64 or getattr(args, name) % 64:
            print(f"error: --{name} {getattr(args, name)}: must be a multiple of 64", file=sys.stderr)
            return 1
    rng, filters = np.random.default_rng(1), mel_filters()
    kinds = [FACTORY] * (args.train // 2) + [SITE] * (args.train - args.train // 2)
    kinds += [SITE, WORN] * (args.test // 2)
    sounds = np.stack([record(rng, kind, filters) for kind in kinds])
    made = samples.from_arrays(
        sounds, np.array(kinds, np.uint8), train=args.train, epochs=args.epochs, divisor=32, zero=128
    )
    try:
        data = samples.to_c(made).encode() if args.out.suffix == ".c" else made.to_bytes()
        samples.write(args.out, data)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"sounds: made by NumPy: {made.train:,} to learn from, {made.test:,} to judge")
    return 0


if __name__ == "__main__":
    sys.exit(main())
