"""Samples as bytes: each float that bytes can stand for is the same float on the board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.board_link_layout import link_layout
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.datasets import samples
from autodiff_gen.errors import DataError
from autodiff_gen.fleet.records import records

BYTES = np.arange(256, dtype=np.float32)


@pytest.fixture(scope="module")
def layout():
    spec = ag.Model.supervised(nn.Linear(2, 1), (4, 2), nn.MSELoss(), optim.SGD(lr=0.1))
    return link_layout(compile_model(spec, "net", ["ref"]))


@pytest.mark.parametrize(
    "numbers, scale",
    [
        (BYTES / np.float32(255), (255.0, 0)),
        ((BYTES - 128) / 64, (64.0, 128)),
        (BYTES, (1.0, 0)),
        ((BYTES - 1000) / 1024, (1024.0, 1000)),
        (np.zeros(256, np.float32), (255.0, 0)),
        (BYTES * 3, None),
        (BYTES / np.float32(127), None),
        (np.where(BYTES == 3, np.nan, BYTES), None),
    ],
)
def test_bytes_for_floats(layout, numbers, scale, tmp_path: Path) -> None:
    x = numbers.astype(np.float32).reshape(128, 2)
    data = {a.name: x if not a.is_target else np.full((128, 1), 0.3, np.float32) for a in layout.inputs}
    (tmp_path / "samples.bin").write_bytes(records(layout, data, np.arange(100), np.arange(100, 128)))
    found = samples.read(tmp_path / "samples.bin")
    assert (found.train, found.test, found.label_bytes) == (100, 28, 4)
    own = found.records[:, : found.input_bytes]
    if scale is None:
        assert (found.divisor, found.zero, found.input_bytes) == (255.0, 0, 8)
        np.testing.assert_array_equal(own.copy().view(np.float32), x)
    else:
        assert (found.divisor, found.zero, found.input_bytes) == (*scale, 2)
        np.testing.assert_array_equal(
            (own.astype(np.float32) - np.float32(found.zero)) / np.float32(found.divisor), x
        )


def test_a_damaged_scale(tmp_path: Path) -> None:
    whole = samples.from_arrays(
        np.zeros((3, 4), np.uint8), np.zeros(3, np.uint8), train=2, epochs=1, divisor=2
    )
    path = tmp_path / "samples.bin"
    path.write_bytes(whole.to_bytes())
    assert samples.read(path).divisor == 2.0
    for at in (8, 44, 50, 53):
        data = bytearray(whole.to_bytes())
        data[at] ^= 1
        path.write_bytes(bytes(data))
        with pytest.raises(DataError, match="the header is damaged"):
            samples.read(path)
    for wrong in (0.0, float("nan"), -1.0, float("inf")):
        path.write_bytes(samples.SampleSet(whole.records, 4, 1, 2, 1, wrong).to_bytes())
        with pytest.raises(DataError, match="which is no number: write the file again"):
            samples.read(path)
