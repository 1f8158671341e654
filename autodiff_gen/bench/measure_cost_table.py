"""The cost table of a core, from the instructions of the functions of bench/qemu/costs.py and of small kernel calls."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..passes.costs import loads_of_a_product, sums_in_a_tile
from ..targets.board import BoardSpec
from ..targets.cost_table import CostTable, covered_by_tiles
from .kernel_cases import Case, column_sums, gemm, matrix_vector, vector

Record = Mapping[str, Any]
LENGTH = 97  # The elements of the functions' vectors; not a multiple of a block, so that floats are moved one by one.
TILES = (1, 2, 4, 8)


def cases() -> Iterator[Case]:
    """Kernel calls of sizes for which loops may be faster than kernels: complete tiles, edges and less than a tile."""
    for size in ((4, 4, 4), (4, 4, 8), (8, 8, 4), (8, 8, 8), (12, 12, 12), (16, 16, 2), (16, 16, 16)):
        yield from (gemm(letters, *size) for letters in ("nn", "nt", "tn"))
    for size in (
        (2, 8, 4),
        (8, 2, 4),
        (6, 5, 8),
        (3, 4, 4),
        (10, 10, 10),
        (5, 16, 16),
        (2, 8, 32),
        (16, 3, 16),
        (3, 5, 32),
        (10, 10, 32),
        (6, 10, 16),
    ):
        yield from (gemm(letters, *size) for letters in ("nn", "nt", "tn"))
    for kernel in ("gemv_f32", "gemv_t_f32"):
        for m, n in ((4, 4), (8, 4), (4, 8), (8, 8), (16, 8), (8, 16), (16, 16), (2, 8), (10, 10), (5, 16)):
            yield matrix_vector(kernel, m, n)
    for m, n in (
        (4, 4),
        (8, 4),
        (4, 8),
        (8, 8),
        (16, 4),
        (16, 8),
        (12, 12),
        (8, 40),
        (64, 4),
        (16, 2),
        (12, 10),
    ):
        yield column_sums(m, n)
    for m, n in ((40, 16), (40, 32), (64, 8), (20, 48), (32, 10)):
        yield column_sums(m, n)
    for length in (4, 8, 16, 32, 64):
        yield vector(length)


def measured(board: BoardSpec, functions: Record, kernels: Record) -> dict[str, float | dict[str, float]]:
    """The keys of [cost] that are measured, from the records bench.json and kernels.json.

    The loops have LENGTH iterations with known numbers of loads, additions and stores, so their differences give the
    cost of each. Without an FPU the time of an addition of floats depends on its operands; then the loops are over
    integers.
    """
    counted = {e["entry"]: e["instructions"] / LENGTH for e in functions["entries"]}
    one, nine, loads, stores = (
        counted[f"{'f32' if 'fpu' in board.target.features else 's32'}_{what}"]
        for what in ("add_1", "add_9", "load_3", "store_2")
    )
    addition = (nine - one) / 8
    load, store = (loads - one - addition) / 2, stores - one - addition
    loop = max(0.0, one - addition - load - store)
    table: dict[str, float | dict[str, float]] = {
        "load": load,
        "store": store,
        "arithmetic": (counted["f32_add_9"] - counted["f32_add_1"]) / 8,
        "loop": loop,
        "mac": _mac(board.cost, load, loop, {e["entry"]: e["instructions"] for e in functions["entries"]}),
    }
    groups: dict[str, list[Record]] = {}
    for case in kernels["cases"]:
        groups.setdefault(_group(case["family"]), []).append(case)
    return {**table, **{name: _fitted(rows) for name, rows in groups.items()}}


def _mac(cost: CostTable, load: float, loop: float, counted: Mapping[str, float]) -> float:
    """The cost of a multiply-accumulate in loops: the median over pairs of products that differ in length, without
    loads and without the shares of the loops."""
    found = []
    for name, instructions in counted.items():
        if not name.startswith("product"):
            continue
        letters, *sizes = name.split("_")[1:]
        m, k, n = map(int, sizes)
        longer = counted.get(f"product_{letters}_{m}_{2 * k}_{n}")
        if longer is not None:
            tile = sums_in_a_tile(cost, (m, n))
            found.append(
                (longer - instructions) / (m * k * n)
                - load * loads_of_a_product(tile)
                - loop / math.prod(tile)
            )
    return statistics.median(found)


def _group(family: str) -> str:
    return "gemm" if family.startswith("gemm") else "gemv" if family.startswith("gemv") else family


def _fitted(rows: Sequence[Record]) -> dict[str, float]:
    """The fields of the KernelCost with the least relative error: instructions = call + result * results + term *
    (terms in tiles) + edge * (terms where an extent is shorter than a tile)."""
    found = {tile: _least_squares(rows, tile) for tile in TILES}
    tile = min(
        TILES, key=lambda t: found[t][1] * (1 if t == 1 else 2)
    )  # a tile must explain half of the error
    call, result, term, edge = found[tile][0]
    return {"call": call, "result": result, "term": term, "edge": edge or term, "tile": tile}


def _least_squares(rows: Sequence[Record], tile: int) -> tuple[list[float], float]:
    """The four costs, none negative, and the mean of the squared relative errors."""
    features = np.array([_features(r, tile) for r in rows], dtype=float)
    features /= np.array([[r["instructions"]] for r in rows], dtype=float)
    use = [k for k in range(4) if features[:, k].any()]
    if np.array_equal(features[:, 1], features[:, 2] + features[:, 3]):
        use.remove(1)  # each result has one term
    while True:
        found = np.linalg.lstsq(features[:, use], np.ones(len(rows)), rcond=None)[0]
        if (found >= 0).all():
            break
        use.pop(int(found.argmin()))
    costs = dict(zip(use, map(float, found), strict=True))
    error = float(((features[:, use] @ found - 1) ** 2).mean())
    return [costs.get(k, 0.0) for k in range(4)], error


def _features(row: Record, tile: int) -> tuple[int, int, int, int]:
    sizes = [int(s) for s in row["sizes"].split("x")]
    extents = {"gemv": sizes[:1], "gemv_t": sizes[1:], "column_sums": sizes[1:]}.get(row["family"], sizes[:2])
    results = math.prod(extents)
    terms = row["macs"] // results
    covered = covered_by_tiles(extents, tile)
    return 1, results, covered * terms, 0 if covered else results * terms


def toml(board: BoardSpec, functions: Record, kernels: Record) -> str:
    """The section [cost] with the measured keys; keys that cannot be counted have the board's values."""
    lines = [
        f"# {board.target.core}: executed instructions, kernels {','.join(kernels['kernels'])}, counted in QEMU by "
        f"`./scons board={board.id} bench-costs`",
        "[cost]",
    ]
    for key, value in measured(board, functions, kernels).items():
        if isinstance(value, dict):
            inner = ", ".join(f"{k} = {_number(v)}" for k, v in value.items())
            lines.append(f"{key} = {{ {inner} }}")
        else:
            lines.append(f"{key} = {_number(value)}")
    kept = (
        "code",
        "arena",
        "memory",
        "registers",
        "vector",
        "vector_loop",
        "block_moves",
        "finish",
        "limit",
        "cycles",
    )
    lines += [
        f"{key} = {_number(getattr(board.cost, key))}    # not counted: as the board has it" for key in kept
    ]
    if (cache := board.cost.cache) is not None:
        inner = ", ".join(f"{key} = {value}" for key, value in asdict(cache).items())
        lines.append(f"cache = {{ {inner} }}    # not counted: as the board has it")
    return "\n".join(lines)


def _number(x: float | bool) -> str:
    if isinstance(x, bool):
        return str(x).lower()
    return f"{x:.3g}" if x < 100 else f"{x:.0f}"
