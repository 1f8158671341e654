"""Write photos.npz from the photographs of scikit-image: python photos.py [--from FOLDER --out FILE]

It needs scikit-image, or the folder skimage/data of its wheel, and Pillow. Only photographs that scikit-image documents
as CC0 or public domain are read, and only those inside the wheel. A photograph is stored as 224 rows of luminance and
112 of the two colour differences.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import numpy as np

ROWS = 224
# The classes in their order: name -> (file, part of it: left, top, right, bottom). The last two are new to the network.
PHOTOGRAPHS = {
    "brick": ("brick.png", None),
    "cat": ("chelsea.png", (0, 0, 400, 300)),
    "cell": ("cell.png", (303, 253, 547, 497)),
    "clock": ("clock_motion.png", (98, 50, 302, 254)),
    "coffee": ("coffee.png", None),
    "gravel": ("gravel.png", None),
    "hubble": ("hubble_deep_field.jpg", None),
    "rocket": ("rocket.jpg", None),
    "grass": ("grass.png", None),
    "retina": ("retina.jpg", None),
}


def folder_of_scikit_image():
    found = importlib.util.find_spec("skimage")
    return None if found is None or found.origin is None else Path(found.origin).with_name("data")


def main():
    parser = argparse.ArgumentParser(description="Reduce photographs of scikit-image.")
    parser.add_argument("--from", type=Path, dest="source", help="skimage/data (default: scikit-image's)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("photos.npz"))
    args = parser.parse_args()
    source = args.source or folder_of_scikit_image()
    try:
        from PIL import Image
    except ImportError:
        print("error: Pillow is not installed; run: pip install pillow", file=sys.stderr)
        return 1
    if source is None or not source.is_dir():
        print("error: no folder skimage/data: install scikit-image, or name it with --from", file=sys.stderr)
        return 1
    planes = {}
    for name, (file, part) in PHOTOGRAPHS.items():
        whole = Image.open(source / file).convert("RGB")
        photo = whole if part is None else whole.crop(part)
        columns = 2 * round(ROWS / 2 * photo.width / photo.height)
        light, *colours = photo.resize((columns, ROWS), Image.Resampling.LANCZOS).convert("YCbCr").split()
        halves = [c.resize((columns // 2, ROWS // 2), Image.Resampling.BOX) for c in colours]
        planes[f"{name}.light"] = np.asarray(light)
        planes[f"{name}.colour"] = np.stack([np.asarray(c) for c in halves])
    np.savez_compressed(args.out, **planes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
