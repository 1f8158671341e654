"""Tiles and terms of every op that declares them, against the whole result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from op_cases import ROWS, Case, case
from row_groups import by_first, each_row

from autodiff_gen.ir.build import apply, make_input
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Node, Value
from autodiff_gen.ir.op_kinds import Range, Tile
from autodiff_gen.ir.tiles import axis_of_result, computed, term_of, tile_of, whole
from autodiff_gen.ir.types import Type, f32
from autodiff_gen.ops.movement.slices import window

PRODUCTS = {
    "matmul",
    "conv2d",
    "conv2d_epilogue",
    "conv2d_s8",
    "depthwise2d_dx",
    "conv2d_dw_s8_f32",
    "avg_pool2d_s8",
    "dense_s8",
}
SUMS = {"sum", "matmul", "column_sums", "conv2d_dw", "depthwise2d_dw_s8_f32", "conv2d", "conv2d_dx"}


def _ranges(extent: int) -> list[tuple[int, int]]:
    """Ranges that make up an axis: one element, and the rest in two parts."""
    bounds = sorted({0, min(1, extent), (1 + extent) // 2, extent})
    return list(itertools.pairwise(bounds))


def _cut(v: Value, at: Range) -> Value:
    starts = tuple(at.start if a == at.axis else 0 for a in range(v.ndim))
    shape = tuple(at.stop - at.start if a == at.axis else d for a, d in enumerate(v.type.shape))
    return window(v, shape, starts, (1,) * v.ndim)


def _part(node: Node, tile: Tile) -> Node:
    operands = [_cut(v, tile.ranges[k]) if k in tile.ranges else v for k, v in enumerate(node.operands)]
    return computed(node, tile, tuple(operands))


def _value(c: Case, v: Value) -> Any:
    return np.asarray(evaluate([v], c.feeds, float_dtype="float64")[0], np.float64)


def _tiles(node: Node) -> Iterator[tuple[Range, Tile]]:
    for axis, extent in enumerate(node.results[0].type.shape):
        for start, stop in _ranges(extent) if isinstance(extent, int) else ():
            at = Range(axis, start, stop)
            tile = tile_of(node, at)
            if tile is not None:
                yield at, tile


EVERY = [*ROWS, *((n, i) for n in ("conv2d_epilogue", "depthwise2d_epilogue") for i in range(3))]


def _with_tiles() -> list[tuple[str, int]]:
    return [row for row in EVERY if any(_tiles(case(*row).outs[0].node))]


TILED = _with_tiles()


def test_products_and_poolings_have_tiles() -> None:
    assert {name for name, _ in TILED} >= PRODUCTS


def test_composites_and_parts_of_arrays_have_tiles() -> None:
    assert {name for name, _ in TILED} >= {"standardize", "softmax", "assemble", "slice"}


@by_first(TILED)
@each_row
def test_a_tile_is_a_part_of_the_result(row: tuple[str, int]) -> None:
    c = case(*row)
    node = c.outs[0].node
    for at, tile in _tiles(node):
        for y, found in zip(node.results, _part(node, tile).results, strict=True):
            part = np.take(_value(c, y), range(at.start, at.stop), at.axis)
            np.testing.assert_allclose(_value(c, found), part, rtol=1e-12, atol=1e-12, err_msg=f"{at}")
        for k, r in tile.ranges.items():
            assert r.stop <= whole(node.operands[k], r.axis).stop


def _sums(c: Case) -> Iterator[list[Tile]]:
    """For each axis of an operand that the op sums over, the terms of ranges that make it up."""
    node = c.outs[0].node
    for k, v in enumerate(node.operands):
        for axis, extent in enumerate(v.type.shape):
            if isinstance(extent, int):
                terms = [term_of(node, k, Range(axis, *ends)) for ends in _ranges(extent)]
                if all(terms):
                    yield [t for t in terms if t is not None]


SUMMED = [row for row in EVERY if any(_sums(case(*row)))]


def test_products_and_sums_have_terms() -> None:
    assert {name for name, _ in SUMMED} >= SUMS


@by_first(SUMMED)
@each_row
def test_terms_add_up_to_the_result(row: tuple[str, int]) -> None:
    c = case(*row)
    for terms in _sums(c):
        total = sum(_value(c, _part(c.outs[0].node, t).results[0]) for t in terms)
        np.testing.assert_allclose(total, _value(c, c.outs[0]), rtol=1e-9, atol=1e-9)


def test_the_axis_of_a_result() -> None:
    c = case("conv2d", 0)
    node = c.outs[0].node
    assert [axis_of_result(node, 0, a) for a in range(4)] == [0, 1, 2, None]
    assert [axis_of_result(node, 1, a) for a in range(4)] == [3, None, None, None]


def test_rows_of_an_image_are_rows_of_a_matrix() -> None:
    x = make_input("x", Type(f32, (1, 4, 3, 2)))
    flat, back = (
        apply("reshape", x, shape=(12, 2)),
        apply("reshape", apply("reshape", x, shape=(12, 2)), shape=x.type.shape),
    )
    assert tile_of(flat.node, Range(0, 3, 9)) == Tile({0: Range(1, 1, 3)}, {"shape": (6, 2)})
    assert tile_of(flat.node, Range(0, 2, 9)) is None, "no whole rows of the image"
    assert tile_of(flat.node, Range(1, 0, 1)) == Tile({0: Range(3, 0, 1)}, {"shape": (12, 1)})
    assert tile_of(back.node, Range(1, 1, 2)) == Tile({0: Range(0, 3, 6)}, {"shape": (1, 1, 3, 2)})
