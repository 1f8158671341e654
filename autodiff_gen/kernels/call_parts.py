"""The work of a kernel's call by parts: numbers of calls of micro-kernels, of products in tiles, of products of single
pixels, and so on, for the kernels in kernels/tiles/. A board's table has the cost of each part. Stdlib only.

The main parts, by name:
call: 1; result: elements that are stored; product: multiply-accumulates;
term: multiply-accumulates in tiles, including the unused elements of incomplete tiles;
tile: tiles; run: runs of products of a tile whose operands are contiguous in memory;
cut: incomplete tiles, which are stored element by element;
edge: elements of an epilogue in columns that fill no block.

In convolutions:
region: parts of an image whose windows have the same valid taps;
panel: multiply-accumulates with weights that are packed first; packed: weights that are packed;
single: multiply-accumulates of pixels that fill no tile; scattered: tiles whose pixels are in several rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import TypeAlias

Facts: TypeAlias = Mapping[str, float]
Parts: TypeAlias = dict[str, float]

TILE = 4  # rows and columns of a tile of products
CHANNELS = 8  # channels of a tile of a depthwise convolution, and columns of a panel
PANEL = 32  # the least number of pixels for which weights are packed
PADDED_ROWS = 16  # rows that are packed at a time, of a factor with fewer columns than a tile
NARROW = 12  # rows of a window of at most this many elements are computed at once, even if their valid windows differ


_TILED = ("term", "tile", "run", "panel", "packed", "panel_run", "single", "single_run", "scattered")


def call_parts(kernel: str, facts: Facts) -> Parts:
    """The parts of a call. kernel: the contract's name, or the symbol without ag_. Empty for kernels that are not in
    tiles, and if a size is not known."""
    family = next((f for prefix, f in _FAMILIES.items() if kernel.startswith(prefix)), None)
    try:
        return {} if family is None else {"call": 1.0, **family({**_DEFAULTS, **facts})}
    except KeyError:
        return {}


_DEFAULTS = {"groups": 1.0, "dilation_h": 1.0, "dilation_w": 1.0, "epilogue": 0.0, "panel": 0.0, "n": 1.0}


def _matrices(f: Facts, whole: int = TILE) -> Parts:
    """A product of matrices. whole: multiples of this number of columns fill tiles."""
    m, n, k = f["m"], f["n"], f["k"]
    tiles = _tiles(m) * _tiles(n)
    parts = {"term": TILE * TILE * tiles * k, "tile": tiles, "row": m, "result": m * n, "product": m * n * k}
    cut_columns = n < TILE or n % whole > 0
    passes = _tiles(k, PADDED_ROWS) if n < TILE else 1
    parts["cut"] = ((m % TILE > 0) * _tiles(n) + cut_columns * (m // TILE)) * passes
    return {**parts, "update": m * n * (f.get("beta", 0.0) != 0), **_finished(f)}


def _columns(f: Facts) -> Parts:
    """A gemm_tn: it has tiles of four and of six columns, so any even number of columns fills tiles."""
    return _matrices(f, whole=2)


def _finished(f: Facts) -> Parts:
    edge = f["n"] % TILE
    return {"epilogue": f["m"] * (f["n"] - edge) * f["epilogue"], "edge": f["m"] * edge * f["epilogue"]}


def _rows(f: Facts) -> Parts:
    """Complete tiles of rows, and the remaining rows as products of a vector and a matrix."""
    rest = f["m"] % TILE if f["n"] >= TILE else 0
    parts = _matrices({**f, "m": f["m"] - rest})
    return {
        **parts,
        **_finished(f),
        "single": rest * f["n"] * f["k"],
        "single_run": rest * f["n"],
        "single_row": rest,
    }


def _vector(f: Facts) -> Parts:
    rows, columns = f["m"], f["n"]
    update = f.get("beta", 0.0) != 0
    return {"row": rows, "column": columns, "term": rows * columns, "update": rows * columns * update}


def _axpby(f: Facts) -> Parts:
    return {"term": f["n"]}


def _pooling(f: Facts) -> Parts:
    pixels = f["n"] * f["oh"] * f["ow"]
    taps = f["kh"] * f["kw"]
    return {
        "result": pixels * f["c"],
        "window": pixels,
        "tap": pixels * taps,
        "term": pixels * taps * f["c"],
        "tile": pixels * _tiles(f["c"], CHANNELS),
        "run": pixels * taps * (_tiles(f["c"], CHANNELS) if f["c"] >= CHANNELS else f["c"]),
    }


def _pooled(f: Facts) -> Parts:
    windows = f["n"] * f["ph"] * f["pw"]
    results = windows * f["pool_h"] * f["pool_w"]
    terms = f["kh"] * f["kw"] * f["c"]
    return {
        "result": results * f["o"],
        "run": results * f["o"] * f["kh"],
        "term": results * TILE * _tiles(f["o"]) * terms,
        "pooled": windows * f["o"] * terms,
        "window": windows * terms,
        "pixel": f["n"] * f["h"] * f["w"] * f["c"],
    }


def _forward(f: Facts) -> Parts:
    if f["groups"] > 1:
        return _window_sums(f, _taps_of_results(f, "h"), _taps_of_results(f, "w"), f["oh"] * f["ow"])
    return _regions(f, _taps_of_results(f, "h"), _taps_of_results(f, "w"), f["o"], f["c"], by_rows=False)


def _dx(f: Facts) -> Parts:
    if f["groups"] > 1:
        return _window_sums(f, _taps_of_inputs(f, "h"), _taps_of_inputs(f, "w"), f["h"] * f["w"])
    return _regions(f, _taps_of_inputs(f, "h"), _taps_of_inputs(f, "w"), f["c"], f["o"], by_rows=True)


def _regions(
    f: Facts,
    rows: list[tuple[int, int]],
    columns: list[tuple[int, int]],
    results: float,
    terms: float,
    by_rows: bool,
) -> Parts:
    """A convolution, or, by_rows, its gradient, which adds up a row of taps at a time. rows, columns: for each region,
    the number of rows (columns), and the number of their valid taps."""
    parts = dict.fromkeys(("region", "product", *_TILED), 0.0)
    parts["result"] = f["n"] * sum(a for a, _ in rows) * sum(b for b, _ in columns) * results
    parts["epilogue"] = parts["result"] * f["epilogue"]
    for height, v in rows:
        for width, u in columns:
            parts["region"] += 1
            pixels, products = f["n"] * height * width, v * u * terms
            parts["product"] += pixels * products * results
            if not products:
                continue
            run, runs, calls = (terms, u, v) if by_rows else (u * terms, v, 1)
            if f["panel"] and pixels >= PANEL and results % CHANNELS == 0:
                parts["panel"] += TILE * _tiles(pixels) * results * products
                parts["packed"] += products * results
                parts["panel_run"] += _tiles(pixels) * results / CHANNELS * v
                continue
            whole, rest = divmod(pixels, TILE)
            if rest and rest * (run + CHANNELS) <= TILE * run and (not by_rows or results >= CHANNELS):
                parts["single"] += rest * products * results
                parts["single_run"] += rest * results * runs * calls
            elif rest:
                whole += 1
            tiles = whole * _tiles(results)
            parts["term"] += TILE * TILE * tiles * products
            parts["tile"] += tiles * calls
            parts["run"] += tiles * calls * runs
            if width % TILE and len(columns) > 1:
                parts["scattered"] += min(whole, f["n"] * height) * _tiles(results) * calls
    return parts


def _window_sums(
    f: Facts, rows: list[tuple[int, int]], columns: list[tuple[int, int]], pixels: float
) -> Parts:
    """A depthwise convolution, or its gradient: one call of the micro-kernel for each run of results."""
    n, tiles = f["n"], _tiles(f["c"], CHANNELS)
    parts = dict.fromkeys(("tile", "result", "term", "product"), 0.0)
    parts["region"] = n * len(rows) * len(columns)
    parts["epilogue"] = n * pixels * f["c"] * f["epilogue"]
    for height, v in rows:
        for width, u in columns:
            if u * v:
                parts["tile"] += n * min(height, width) * tiles
                parts["result"] += n * height * width * tiles * CHANNELS
                parts["term"] += n * height * width * v * u * tiles * CHANNELS
                parts["product"] += n * height * width * v * u * f["c"]
    return parts


def _dw(f: Facts) -> Parts:
    n, kw, c, o = f["n"], int(f["kw"]), f["c"], f["o"]
    windows = [[_windows(f, axis, tap) for tap in range(int(f[f"k{axis}"]))] for axis in "hw"]
    if f["groups"] > 1:
        tiles = _tiles(c, CHANNELS)
        pairs = [(b - a, d - c_) for a, b in windows[0] for c_, d in windows[1]]
        return {
            "tile": n * len(pairs) * tiles,
            "term": n * sum(v * u for v, u in pairs) * tiles * CHANNELS,
            "run": n * sum(min(pair) for pair in pairs) * tiles,
            "product": n * sum(v * u for v, u in pairs) * c,
            "result": n * len(pairs) * c,
        }
    parts = dict.fromkeys(("region", "tile", "term", "run", "few", "edge", "edge_tile"), 0.0)
    valid = sum(b - a for a, b in windows[0]) * sum(b - a for a, b in windows[1])
    parts |= {"product": n * valid * c * o, "result": n * f["kh"] * kw * c * o}
    row, length = windows[1], kw * c
    same = len(set(row)) == 1
    step = length if same or length <= NARROW else c if c >= TILE else TILE
    for first in range(0, int(length), int(step)):
        count = min(step, length - first)
        low, high = row[int(first // c)], row[int((first + count - 1) // c)]
        common = max(0, min(low[1], high[1]) - max(low[0], high[0]))
        cut = max(low[1], high[1]) - min(low[0], high[0]) - common
        tiles = n * _tiles(o) * _tiles(count)
        for begin, end in windows[0]:
            parts["region"] += n
            parts["tile"] += tiles
            parts["term"] += TILE * TILE * tiles * (end - begin) * common
            parts["few"] += (count < TILE) * TILE * TILE * tiles * (end - begin) * common
            parts["run"] += (common < f["ow"]) * tiles * min(end - begin, common)
            parts["edge"] += n * cut
            parts["edge_tile"] += tiles * cut
    return parts


_FAMILIES: Mapping[str, Callable[[Facts], Parts]] = {
    "gemm_rows": _rows,
    "gemm_tn": _columns,
    "gemm": _matrices,
    "dense": _matrices,
    "gemv": _vector,
    "ger": _vector,
    "column_sums": _vector,
    "axpby": _axpby,
    "max_pool2d": _pooling,
    "avg_pool2d": _pooling,
    "conv2d_pool": _pooled,
    "conv2d_dx": _dx,
    "conv2d_dw": _dw,
    "conv2d": _forward,
    "depthwise2d_dx": _dx,
    "depthwise2d_dw": _dw,
    "depthwise2d": _forward,
}


def _tiles(extent: float, of: int = TILE) -> float:
    return -(-extent // of)


def _grouped(taps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """For each run of elements with the same first and last valid tap: its length, and the number of valid taps."""
    return [(len(list(same)), end - first) for (first, end), same in groupby(taps)]


def _axis(f: Facts, axis: str) -> tuple[int, int, int, int, int, int]:
    """Results, inputs, taps, stride, padding and dilation along an axis."""
    pad = f["pad_top"] if axis == "h" else f["pad_left"]
    return tuple(  # type: ignore[return-value]
        map(int, (f[f"o{axis}"], f[axis], f[f"k{axis}"], f[f"stride_{axis}"], pad, f[f"dilation_{axis}"]))
    )


def _taps_of_results(f: Facts, axis: str) -> list[tuple[int, int]]:
    results, inputs, taps, stride, pad, dilation = _axis(f, axis)
    valid = []
    for i in range(results):
        inside = [t for t in range(taps) if 0 <= i * stride - pad + t * dilation < inputs]
        valid.append((inside[0], inside[-1] + 1) if inside else (0, 0))
    return _grouped(valid)


def _taps_of_inputs(f: Facts, axis: str) -> list[tuple[int, int]]:
    """As _taps_of_results, for the inputs in the gradient. Inputs that are a stride apart have the same taps, so inputs
    are grouped by their phase."""
    results, inputs, taps, stride, pad, dilation = _axis(f, axis)
    found = []
    for phase in range(min(stride, inputs)):
        valid = []
        for i in range(phase, inputs, stride):
            at = [(i + pad - t * dilation) for t in range(taps)]
            hit = [t for t, x in enumerate(at) if x % stride == 0 and 0 <= x // stride < results]
            valid.append((hit[0], hit[0] + len(hit)) if hit else (0, 0))
        found += _grouped(valid)
    return found


def _windows(f: Facts, axis: str, tap: int) -> tuple[int, int]:
    """The first and the end of the results whose windows have the tap inside of the input."""
    results, inputs, _, stride, pad, dilation = _axis(f, axis)
    inside = [i for i in range(results) if 0 <= i * stride - pad + tap * dilation < inputs]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)
