"""Einstein summation."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from ..errors import ShapeError
from ..ir.node import Value
from ..ir.types import Dim, Shape, Size, product
from .arguments import TensorLike, as_value, shape_error
from .indexing import diagonal
from .products import matmul
from .reductions import sum
from .shapes import permute, reshape

__all__ = ["einsum"]


def einsum(equation: str, *operands: TensorLike | Sequence[TensorLike]) -> Value:
    """The product of operands whose axes are named by letters, summed over the letters that are not in the result:
    "ij,jk->ik", as torch.einsum. Without "->" the result has the axes of an Ellipsis, then the letters that occur once,
    in alphabetical order. "..." names all other axes of an operand. A letter that occurs twice in an operand names its
    diagonal. More than two operands are multiplied from left to right. Raises ShapeError.
    """
    given: Sequence[Any] = operands
    values = [as_value(v) for v in (given[0] if _is_list(given) else given)]
    terms, out = _parsed(equation, values)
    _sizes(equation, terms, values)
    for k, term in enumerate(terms):
        values[k], terms[k] = _of_diagonals(values[k], term)
    sizes = _sizes(equation, terms, values)
    while len(values) > 2:
        later = out + "".join(terms[2:])
        kept = "".join(dict.fromkeys(c for c in terms[0] + terms[1] if c in later))
        values[:2], terms[:2] = [_product(values[:2], terms[:2], kept, sizes)], [kept]
    if len(values) == 1:
        return _arranged(_summed(values[0], terms[0], out), [c for c in terms[0] if c in out], out)
    return _product(values, terms, out, sizes)


def _of_diagonals(v: Value, term: str) -> tuple[Value, str]:
    """The operand with one axis for each letter."""
    while len(set(term)) < len(term):
        c = next(c for c in term if term.count(c) > 1)
        v = diagonal(v, 0, term.index(c), term.rindex(c))
        term = term.replace(c, "", 1)[::-1].replace(c, "", 1)[::-1] + c
    return v, term


def _is_list(operands: Sequence[Any]) -> bool:
    return len(operands) == 1 and isinstance(operands[0], list | tuple)


def _product(values: Sequence[Value], terms: Sequence[str], out: str, sizes: dict[str, Size]) -> Value:
    """The product of two operands, summed over the letters that are not in `out`."""
    a, b = (
        _summed(v, mine, out + other) for v, mine, other in zip(values, terms, reversed(terms), strict=True)
    )
    left = "".join(c for c in terms[0] if c in out + terms[1])
    right = "".join(c for c in terms[1] if c in out + terms[0])
    if not [c for c in left if c in right and c not in out]:
        return _aligned(a, left, out) * _aligned(b, right, out)
    return _contracted(a, left, b, right, out, sizes)


def _parsed(equation: str, values: Sequence[Value]) -> tuple[list[str], str]:
    if not isinstance(equation, str):
        raise ShapeError(f"einsum: the equation must come first, as in 'ij,jk->ik', not {equation!r}")
    text = equation.replace(" ", "")
    inputs, arrow, out = text.partition("->")
    terms = inputs.split(",")
    if "..." in text and len(terms) == len(values):
        terms, out = _without_ellipsis(terms, out if arrow else None, values)
        inputs, arrow = ",".join(terms), "->"
    if not all(c.isascii() and c.isalpha() for c in inputs.replace(",", "") + out):
        raise ShapeError(f"einsum: {equation!r}: axes are named by letters, as in 'ij,jk->ik'")
    if len(terms) != len(values):
        raise shape_error(
            "einsum", values, f"{equation!r} names {len(terms)} operands, but got {len(values)}"
        )
    if not arrow:
        out = "".join(sorted(c for c in set(inputs) - {","} if inputs.count(c) == 1))
    if len(set(out)) != len(out) or not set(out) <= set(inputs):
        raise shape_error(
            "einsum", values, f"{equation!r}: the result's letters must be the operands', each once"
        )
    return terms, out


def _without_ellipsis(
    terms: Sequence[str], out: str | None, values: Sequence[Value]
) -> tuple[list[str], str]:
    """Terms and result with letters instead of each Ellipsis; a shorter Ellipsis gets the last of the letters."""
    used = "".join(terms)
    counts = [max(v.ndim - len(t) + 3, 0) if "..." in t else 0 for t, v in zip(terms, values, strict=True)]
    letters = "".join([c for c in string.ascii_letters if c not in used][: max(counts)])
    new = [t.replace("...", letters[len(letters) - k :], 1) for t, k in zip(terms, counts, strict=True)]
    if out is None:
        return new, letters + "".join(sorted(c for c in set(used) - {"."} if used.count(c) == 1))
    return new, out.replace("...", letters, 1)


def _sizes(equation: str, terms: Sequence[str], values: Sequence[Value]) -> dict[str, Size]:
    sizes: dict[str, Size] = {}
    for term, v in zip(terms, values, strict=True):
        if len(term) != v.ndim:
            raise shape_error("einsum", values, f"{equation!r}: {term!r} names {len(term)} axes of {v.ndim}")
        for c, d in zip(term, v.shape, strict=True):
            if sizes.setdefault(c, d) != d:
                raise shape_error(
                    "einsum", values, f"{equation!r}: axis {c!r} has extents {sizes[c]} and {d}"
                )
    return sizes


def _summed(v: Value, term: str, kept: str) -> Value:
    """v summed over the axes whose letters are not in `kept`."""
    axes = tuple(i for i, c in enumerate(term) if c not in kept)
    return sum(v, axes) if axes else v


def _arranged(v: Value, term: Sequence[str], out: Sequence[str]) -> Value:
    """v with its axes in the order of `out`."""
    return v if list(term) == list(out) else permute(v, [list(term).index(c) for c in out])


def _aligned(v: Value, term: str, out: str) -> Value:
    """v reshaped to broadcast with a value of the letters `out`."""
    v = _arranged(v, term, [c for c in out if c in term])
    extents = iter(v.shape)
    return reshape(v, tuple(next(extents) if c in term else 1 for c in out))


def _contracted(a: Value, left: str, b: Value, right: str, out: str, sizes: dict[str, Size]) -> Value:
    """The sum over shared letters that are not in the result, as a matrix product."""

    def order(letters: list[str]) -> list[str]:
        """The batch axis first, so that other axes can be merged with it."""
        return sorted(letters, key=lambda c: not isinstance(sizes[c], Dim))

    def shape(letters: list[str]) -> Shape:
        return tuple(sizes[c] for c in letters)

    leading = order([c for c in left if c in right and c in out])
    inner = order([c for c in left if c in right and c not in out])
    rows, columns = order([c for c in left if c not in right]), order([c for c in right if c not in left])
    a, b = _arranged(a, left, leading + rows + inner), _arranged(b, right, leading + inner + columns)
    k = product(shape(inner))
    a = reshape(a, (*shape(leading), product(shape(rows)), k))
    b = reshape(b, (*shape(leading), k, product(shape(columns))))
    y = reshape(matmul(a, b), shape(leading + rows + columns))
    return _arranged(y, leading + rows + columns, list(out))
