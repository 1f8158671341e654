"""Crops of the photographs in photos.npz: 96 x 96 pixels of 3 bytes.

Crops to learn from are of the upper left and the lower right quarter of a photograph, crops to recognise of the other
two: no pixel is in both. Only sums and products of NumPy make them, so that they are the same on every machine.
"""

from pathlib import Path

import numpy as np

SIZE = 96
LEARNED, OTHERS = ((0, 0), (1, 1)), ((0, 1), (1, 0))  # quarters of a photograph: lower, right
WINDOWS = 56, 88  # the smallest and the largest side of a crop's square, in a photograph of 224 rows
NEW = 2  # photographs that the network was not trained on, the last ones
LAMP = np.array([0.85, 0.55, 0.35])  # the light at the device: dim and warm


def photographs():
    """Their names and pixels, float[rows, columns, 3], of 0 to 255."""
    with np.load(Path(__file__).with_name("photos.npz")) as file:
        names = [name.removesuffix(".light") for name in file.files if name.endswith(".light")]
        return names, [rgb(file[f"{name}.light"], file[f"{name}.colour"]) for name in names]


def rgb(light, colour):
    """Luminance [rows, columns] and differences [2, rows / 2, columns / 2] as colours, by the matrix of JPEG."""
    blue, red = np.repeat(np.repeat(colour, 2, 1), 2, 2).astype(np.float64) - 128.0
    channels = light + 1.402 * red, light - 0.344136 * blue - 0.714136 * red, light + 1.772 * blue
    return np.clip(np.stack(channels, -1), 0.0, 255.0)


def resized(window, side):
    """A square as [side, side, 3], bilinear."""
    at = np.maximum((np.arange(side) + 0.5) * (len(window) / side) - 0.5, 0.0)
    first = np.minimum(at.astype(np.int64), len(window) - 2)
    share = (at - first)[:, None, None]
    rows = window[first] * (1.0 - share) + window[first + 1] * share
    columns = rows.swapaxes(0, 1)
    return (columns[first] * (1.0 - share) + columns[first + 1] * share).swapaxes(0, 1)


def crop(photo, quarters, rng, side=SIZE):
    """A square of one of the quarters, at a random place, of a random size, as it is or mirrored; [side, side, 3]."""
    size = int(rng.integers(*WINDOWS, endpoint=True))
    quarter = quarters[int(rng.integers(len(quarters)))]
    halves = (photo.shape[0] // 2, photo.shape[1] // 2)
    row, column = (
        q * half + int(rng.integers(half - size, endpoint=True))
        for q, half in zip(quarter, halves, strict=True)
    )
    found = resized(photo[row : row + size, column : column + size], side)
    return found[:, ::-1] if rng.random() < 0.5 else found


def by_daylight(found, rng):
    """The pixels in one of many lights: for training before deployment."""
    gains = rng.uniform(0.6, 1.2) * rng.uniform(0.75, 1.15, 3)
    noise = rng.uniform(0.0, 8.0) * rng.uniform(-1.0, 1.0, found.shape)
    return pixels((found * gains - 128.0) * rng.uniform(0.7, 1.3) + 128.0 + rng.uniform(-20.0, 20.0) + noise)


def by_lamp(found, rng):
    """The pixels as the device's camera sees them, with its noise."""
    return pixels(found * LAMP * rng.uniform(0.9, 1.1) + rng.uniform(-4.0, 4.0, found.shape))


def pixels(values):
    return np.clip(np.rint(values), 0.0, 255.0).astype(np.uint8)


def cut(photos, numbers, quarters, light, rng):
    """A crop of each of the photographs with these numbers, u8[n, SIZE, SIZE, 3]."""
    return np.stack([light(crop(photos[n], quarters, rng), rng) for n in numbers])
