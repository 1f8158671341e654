"""The tables that `pairwise` makes hold every pair, and not many more rows than they must."""

from itertools import combinations, product

import pytest
from pairwise import pairwise


@pytest.mark.parametrize("sizes", [(3, 4), (2, 2, 2), (6, 10, 4, 2), (5, 1, 5, 5, 2)], ids=str)
def test_every_pair_of_values_is_in_a_row(sizes):
    values = [[f"{name}{k}" for k in range(n)] for name, n in zip("abcde", sizes, strict=False)]
    rows = pairwise(*values)
    held = {pair for row in rows for pair in combinations(row, 2)}
    assert held == {pair for first, second in combinations(values, 2) for pair in product(first, second)}
    largest, second = sorted(sizes)[-1:-3:-1]
    assert largest * second <= len(rows) <= 1.25 * largest * second + 2
    assert rows == pairwise(*values)
