"""The digits of examples/mnist: where they come from, and every way in which they can be damaged."""

import gzip
import hashlib
import os
import struct
import subprocess
import sys

import numpy as np
import pytest
from checkout import ROOT

from autodiff_gen import datasets
from autodiff_gen.datasets import samples
from autodiff_gen.errors import DataError

DATA_PY = ROOT / "examples" / "mnist" / "data.py"


def idx(array):
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return gzip.compress(head + array.tobytes(), mtime=0)


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """A folder with 50 digits of our own, whose checksums the loader knows; no network, an empty cache."""
    images = np.random.default_rng(1).integers(0, 256, (50, 28, 28), dtype=np.uint8)
    labels = (np.arange(50) % 10).astype(np.uint8)
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    sums = {}
    for name, array in ((datasets.IMAGES, images), (datasets.LABELS, labels)):
        packed = idx(array)
        (folder / name).write_bytes(packed)
        sums[name] = hashlib.sha256(packed).hexdigest()
    monkeypatch.setattr(datasets, "SHA256", sums)
    monkeypatch.setattr(datasets, "_get", lambda url: (_ for _ in ()).throw(OSError("no network here")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("AUTODIFF_DATA", raising=False)
    return folder, images, labels


@pytest.mark.parametrize("level", ["the folder", "its parent"])
def test_from_a_folder(digits, monkeypatch, level):
    folder, images, labels = digits
    monkeypatch.setenv("AUTODIFF_DATA", str(folder if level == "the folder" else folder.parent))
    got = datasets.load_digits()
    assert np.array_equal(got.images, images) and np.array_equal(got.labels, labels)
    assert str(folder) in got.source


def test_download_is_checked_and_kept(digits, tmp_path, monkeypatch):
    folder, images, _ = digits
    requested = []

    def get(url):
        requested.append(url)
        return (folder / url.rsplit("/", 1)[1]).read_bytes()

    monkeypatch.setattr(datasets, "_get", get)
    assert np.array_equal(datasets.load_digits().images, images)
    assert np.array_equal(datasets.load_digits().images, images)
    assert len(requested) == 2  # the second time the cache served
    cache = tmp_path / "cache" / "autodiff_gen" / "mnist"
    assert sorted(p.name for p in cache.iterdir()) == [datasets.IMAGES, datasets.LABELS]


def test_a_damaged_download_is_not_kept(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "_get", lambda url: b"<html>sign in to this network</html>")
    said = []
    assert "scikit-learn" in datasets.load_digits(said.append).source
    assert "truncated or damaged" in said[0]
    assert not (tmp_path / "cache").exists()


def test_without_network_scikit_learns_digits(digits):
    said = []
    got = datasets.load_digits(said.append)
    assert got.images.shape == (1797, 28, 28) and got.images.dtype == np.uint8
    assert got.images.max() == 255 and not got.images[:, :2].any() and not got.images[:, :, -2:].any()
    assert set(got.labels.tolist()) == set(range(10))
    assert "scikit-learn" in got.source and "no network here" in said[0]


def test_an_empty_data_folder_is_said(digits, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTODIFF_DATA", str(tmp_path))
    said = []
    datasets.load_digits(said.append)
    assert "no MNIST in $AUTODIFF_DATA" in said[0]


DAMAGE = [
    ("truncated", datasets.IMAGES, lambda d: d[:-100], "truncated or damaged"),
    ("a bit", datasets.LABELS, lambda d: d[:30] + bytes([d[30] ^ 1]) + d[31:], "truncated or damaged"),
    ("empty", datasets.LABELS, lambda d: b"", "truncated or damaged: 0 bytes"),
]


@pytest.mark.parametrize("name, damage, message", [r[1:] for r in DAMAGE], ids=[r[0] for r in DAMAGE])
def test_damaged_files(digits, monkeypatch, name, damage, message):
    folder, *_ = digits
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    monkeypatch.setenv("AUTODIFF_DATA", str(folder))
    with pytest.raises(DataError, match=message) as caught:
        datasets.load_digits()
    assert str(folder / name) in str(caught.value) and "\n" not in str(caught.value)


def test_one_of_two_files(digits, monkeypatch):
    folder, *_ = digits
    (folder / datasets.LABELS).unlink()
    monkeypatch.setenv("AUTODIFF_DATA", str(folder))
    with pytest.raises(DataError, match="needs both"):
        datasets.load_digits()


IDX = [
    ("not gzip", b"hello", "gzip"),
    ("gzip cut", idx(np.zeros((2, 3), np.uint8))[:-9], "gzip"),
    ("other dimensions", idx(np.zeros(3, np.uint8)), "not an IDX file of bytes with 2 dimensions"),
    ("too few bytes", gzip.compress(bytes((0, 0, 8, 2)) + struct.pack(">2I", 2, 3) + b"12345"), "truncated: 5"),
]  # fmt: skip


@pytest.mark.parametrize("data, message", [r[1:] for r in IDX], ids=[r[0] for r in IDX])
def test_bad_idx(data, message):
    with pytest.raises(DataError, match=message):
        datasets.read_idx(data, 2, "file")


def test_split(digits, monkeypatch):
    folder, images, labels = digits
    monkeypatch.setenv("AUTODIFF_DATA", str(folder))
    whole = datasets.load_digits()
    got, train = whole.split()
    assert train == 40 and np.array_equal(got.images, images)
    got, train = whole.split(7, 3)
    assert train == 7 and np.array_equal(got.labels, labels[[0, 1, 2, 3, 4, 5, 6, 47, 48, 49]])
    got, train = whole.split(train=5)
    assert train == 5 and len(got.labels) == 15
    for wrong in ((0, 5), (51, 0), (48, 3), (5, -1)):
        with pytest.raises(DataError, match="test digits from 50"):
            whole.split(*wrong)


def run(out, *arguments, **environment):
    return subprocess.run(
        [sys.executable, str(DATA_PY), "--out", str(out), *arguments],
        env={**os.environ, "PYTHONPATH": str(DATA_PY.parents[2]), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("case", ["damaged", "folder missing", "too many", "no epochs"])
def test_data_py_fails_in_one_line_and_writes_nothing(digits, tmp_path, case):
    """The files are not MNIST's, so that the real checksums call them damaged."""
    folder, *_ = digits
    out = tmp_path / "out" / "samples.bin"
    arguments = []
    environment = {"AUTODIFF_DATA": str(tmp_path / "none"), "XDG_CACHE_HOME": str(tmp_path / "empty")}
    environment |= {"https_proxy": "http://127.0.0.1:9"}  # no network: the digits are scikit-learn's
    if case != "folder missing":
        out.parent.mkdir()
        out.write_text("old")
    if case == "damaged":
        environment["AUTODIFF_DATA"] = str(folder)
    arguments = {"too many": ["--train", "99999"], "no epochs": ["--epochs", "0"]}.get(case, [])
    done = run(out, *arguments, **environment)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    if case == "folder missing":
        assert not out.parent.exists()
    else:
        assert [p.name for p in out.parent.iterdir()] == ["samples.bin"] and out.read_text() == "old"


def test_data_py_writes_what_the_firmware_reads(tmp_path):
    environment = {"AUTODIFF_DATA": "", "XDG_CACHE_HOME": str(tmp_path), "https_proxy": "http://127.0.0.1:9"}
    done = run(tmp_path / "samples.bin", "--train", "20", "--test", "10", "--epochs", "2", **environment)
    assert done.returncode == 0 and "scikit-learn" in done.stdout and "20 to train, 10 to test" in done.stdout
    s = samples.read(tmp_path / "samples.bin")
    assert (s.train, s.test, s.epochs, s.input_bytes, s.label_bytes) == (20, 10, 2, 784, 1)
    assert s.records[:20, 784].tolist() == [*range(10), *range(10)]
