"""Data sets for the examples: from local files, from a mirror with a checksum, or from scikit-learn."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .samples import write

IMAGES = "t10k-images-idx3-ubyte.gz"
LABELS = "t10k-labels-idx1-ubyte.gz"
SHA256 = {
    IMAGES: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    LABELS: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
TIMEOUT = 10  # seconds, for a reply


@dataclass(frozen=True)
class Digits:
    """Handwritten digits: `images` uint8[n, 28, 28] (0 paper, 255 ink), `labels` uint8[n] (0..9), their `source`."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    source: str

    def split(self, train: int | None = None, test: int | None = None) -> tuple[Digits, int]:
        """The digits of a run in file order, the training set first, and the size of the training set.

        Training set: the first `train` digits, by default four fifths; test set: the last `test`, by default the rest,
        up to a fifth. Of 10,000: 8,000 and 2,000. Raises DataError if there are too few.
        """
        total = len(self.labels)
        train_n = total * 4 // 5 if train is None else train
        test_n = min(total - train_n, total // 5) if test is None else test
        if train_n < 1 or test_n < 0 or train_n + test_n > total:
            raise DataError(
                f"cannot take {train_n} training and {test_n} test digits from {total} ({self.source}): "
                f"request at least 1 to train on and at most {total} in total"
            )
        pick = np.r_[0:train_n, total - test_n : total]
        return Digits(self.images[pick], self.labels[pick], self.source), train_n


def load_digits(say: Callable[[str], None] = print) -> Digits:
    """The digits of `examples/mnist`: 10,000 of MNIST from $AUTODIFF_DATA, the cache, or a mirror, otherwise the 1,797
    of scikit-learn. `say` is called with one line for each source that failed.

    A damaged file is an error and never skipped. Raises DataError.
    """
    data = os.environ.get("AUTODIFF_DATA")
    if data:
        for folder in (Path(data), Path(data) / "mnist"):
            if all((folder / name).is_file() for name in SHA256):
                return _from_folder(folder)
            for name in SHA256:
                if (folder / name).is_file():
                    raise DataError(f"{folder}: has {name}, but needs both {IMAGES} and {LABELS}")
        say(f"no MNIST in $AUTODIFF_DATA ({data}): it has neither {IMAGES} nor mnist/{IMAGES}")
    cache = cache_folder() / "mnist"
    if all((cache / name).is_file() for name in SHA256):
        return _from_folder(cache)
    try:
        _download(cache)
    except DataError as error:
        say(str(error))
        return _from_sklearn()
    return _from_folder(cache)


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/autodiff_gen, by default ~/.cache/autodiff_gen."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "autodiff_gen"


def read_idx(packed: bytes, dims: int, where: str) -> NDArray[np.uint8]:
    """The array uint8[...] of a gzipped IDX file with `dims` dimensions. Raises DataError."""
    try:
        data = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{where}: truncated or damaged gzip file: {error}") from None
    head = 4 + 4 * dims
    if len(data) < head or data[:4] != bytes((0, 0, 8, dims)):
        raise DataError(f"{where}: not an IDX file of bytes with {dims} dimensions")
    shape = struct.unpack_from(f">{dims}I", data, 4)
    if len(data) - head != int(np.prod(shape)):
        raise DataError(f"{where}: truncated: {len(data) - head} bytes of data, its header says {shape}")
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)


def _checked(data: bytes, name: str, where: str) -> bytes:
    digest = hashlib.sha256(data).hexdigest()
    if digest != SHA256[name]:
        raise DataError(
            f"{where}: truncated or damaged: {len(data)} bytes with SHA-256 {digest[:12]}..., "
            f"expected {SHA256[name][:12]}...; delete the file or download it again"
        )
    return data


def _from_folder(folder: Path) -> Digits:
    packed = {}
    for name in SHA256:
        try:
            packed[name] = _checked((folder / name).read_bytes(), name, str(folder / name))
        except OSError as error:
            raise DataError(f"{folder / name}: cannot be read: {error.strerror}") from None
    images = read_idx(packed[IMAGES], 3, str(folder / IMAGES))
    return Digits(images, read_idx(packed[LABELS], 1, str(folder / LABELS)), f"MNIST, {folder}")


def _download(folder: Path) -> None:
    """Download and check both files, then write both. Raises DataError with the error of the last mirror."""
    failure = ""
    for mirror in MIRRORS:
        try:
            files = {name: _checked(_get(mirror + name), name, mirror + name) for name in SHA256}
        except DataError as error:
            failure = str(error)
            continue
        except (OSError, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            failure = f"{mirror}: {reason}"
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{folder}: cannot be created: {error.strerror}") from None
        for name, data in files.items():
            write(folder / name, data)
        return
    raise DataError(f"MNIST cannot be fetched: {failure}")


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        data: bytes = answer.read(1 << 24)
    return data


def _from_sklearn() -> Digits:
    """The 1,797 8x8 digits of scikit-learn (0..16), enlarged to 24x24 and padded by 2 pixels on each side."""
    try:
        from sklearn.datasets import load_digits as bundled
    except ImportError:
        raise DataError(
            f"no digits: put {IMAGES} and {LABELS} into a folder and set AUTODIFF_DATA to it, "
            "or pip install scikit-learn"
        ) from None
    small = bundled()
    scaled = np.minimum(small.images * 16.0, 255.0).astype(np.uint8)
    large = np.pad(scaled.repeat(3, axis=1).repeat(3, axis=2), ((0, 0), (2, 2), (2, 2)))
    return Digits(large, small.target.astype(np.uint8), "the 8x8 digits of scikit-learn, enlarged")
