"""How samples are divided among boards."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_gen.errors import DataError
from autodiff_gen.fleet.split import split

LABELS = np.arange(200) % 10


@pytest.mark.parametrize("alpha", (0.0, 0.1, 100.0))
@pytest.mark.parametrize("boards", (1, 7, 200))
def test_each_sample_is_on_one_board(boards: int, alpha: float) -> None:
    parts = split(200, boards, 3, LABELS, alpha)
    assert len(parts) == boards and all(len(part) for part in parts)
    assert np.concatenate(parts).tolist() != list(range(200)) or boards == 1
    assert sorted(np.concatenate(parts).tolist()) == list(range(200))
    assert [p.tolist() for p in parts] == [p.tolist() for p in split(200, boards, 3, LABELS, alpha)]


def test_a_small_alpha_gives_boards_few_classes() -> None:
    few, many = (
        np.mean([len(np.unique(LABELS[part])) for part in split(200, 10, 0, LABELS, alpha)])
        for alpha in (0.05, 100.0)
    )
    assert few < 5 < 8 < many


def test_what_cannot_be_divided_is_one_line() -> None:
    with pytest.raises(DataError, match="201 boards for 200 samples"):
        split(200, 201, 0)
    with pytest.raises(DataError, match="the model has no labels"):
        split(200, 2, 0, None, 0.5)
