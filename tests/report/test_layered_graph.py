"""Graphs as pictures: boxes do not overlap, operands are above, and lines pass no box."""

from __future__ import annotations

import random
import re
from itertools import combinations

import pytest

from autodiff_gen.report.layered_graph import GAP_X, Box, _apart, drawn

RECT = re.compile(
    r'<rect class="(node|input)[^"]*" x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"'
)
Rect = tuple[float, float, float, float]


def graph(seed: int) -> list[Box]:
    """Random operands; boxes without operands are inputs."""
    chance = random.Random(seed)
    boxes = []
    for k in range(chance.randint(1, 14)):
        operands = tuple(chance.sample(range(k), min(k, chance.randint(0, 3))))
        lines = tuple("x" * chance.randint(1, 20) for _ in range(chance.randint(1, 4)))
        boxes.append(Box(lines, operands, "node" if operands else "input"))
    return boxes


def rects(picture: str) -> list[Rect]:
    return [(float(x), float(y), float(w), float(h)) for _, x, y, w, h in RECT.findall(picture)]


def points(path: str) -> list[tuple[float, float]]:
    """Points on a path of M, V and C, close to each other."""
    found: list[tuple[float, float]] = []
    for command, text in re.findall(r"([MVC])([\d. -]+)", path):
        v = [float(word) for word in text.split()]
        if command == "M":
            found.append((v[0], v[1]))
            continue
        x, y = found[-1]
        curve = (
            [(x, y), (x, y), (x, v[0]), (x, v[0])]
            if command == "V"
            else [(x, y), *zip(v[::2], v[1::2], strict=True)]
        )
        for i in range(1, 21):
            t = i / 20
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            found.append(tuple(sum(w * p[d] for w, p in zip(weights, curve, strict=True)) for d in (0, 1)))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_boxes_and_lines_are_apart(seed: int) -> None:
    boxes = graph(seed)
    picture = drawn(boxes, "a graph")
    places = rects(str(picture))
    assert len(places) == len(boxes)
    for (ax, ay, aw, ah), (bx, by, bw, bh) in combinations(places, 2):
        assert ax + aw <= bx or bx + bw <= ax or ay + ah <= by or by + bh <= ay
    paths = re.findall(r'<path d="([^"]*)"', str(picture))
    assert len(paths) == sum(len(box.operands) for box in boxes)
    edges = [(o, k) for k, box in enumerate(boxes) for o in box.operands]
    for (o, k), path in zip(edges, paths, strict=True):
        line = points(path)
        (x, y), (ex, ey) = line[0], line[-1]
        source, target = places[o], places[k]
        assert source[1] + source[3] <= target[1]
        assert source[0] <= x <= source[0] + source[2] and abs(y - source[1] - source[3]) < 0.2
        assert target[0] <= ex <= target[0] + target[2] and abs(ey - target[1]) < 0.2
        assert all(-0.1 <= px <= picture.width + 0.1 and 0 <= py <= picture.height for px, py in line)
        for px, py in line:
            inside = [
                r
                for r in places
                if r[0] + 0.2 < px < r[0] + r[2] - 0.2 and r[1] + 0.2 < py < r[1] + r[3] - 0.2
            ]
            assert inside == []


def test_a_chain_is_straight() -> None:
    boxes = [Box(("x" * k,), (k - 2,) if k > 1 else (), "node") for k in range(1, 8)]
    middles = [x + w / 2 for x, _, w, _ in rects(str(drawn(boxes, "a chain")))]
    assert max(middles) - min(middles) < 0.2


@pytest.mark.parametrize(
    "wanted, apart, places",
    [
        ([0.0, 10.0], [5.0], [0.0, 10.0]),
        ([0.0, 0.0], [4.0], [-2.0, 2.0]),
        ([3.0, 0.0, 0.0], [3.0, 3.0], [-2.0, 1.0, 4.0]),
    ],
)
def test_places_are_as_near_as_the_distances_allow(
    wanted: list[float], apart: list[float], places: list[float]
) -> None:
    assert _apart(wanted, apart) == pytest.approx(places)
    assert GAP_X > 0
