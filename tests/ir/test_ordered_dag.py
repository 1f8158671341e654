"""A graph whose order is maintained: answers as a search gives them, and work that does not grow with the graph."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from call_count import growth

from autodiff_gen.ir.ordered_dag import OrderedDag


def below(dag: OrderedDag[int], start: int) -> set[int]:
    found: set[int] = set()
    pending = [start]
    while pending:
        new = dag.below[pending.pop()] - found
        found |= new
        pending += new
    return found


def has_path_through_others(dag: OrderedDag[int], u: int, v: int) -> bool:
    return any(end in below(dag, n) for start, end in ((u, v), (v, u)) for n in dag.below[start] - {end})


def test_answers_are_those_of_a_search() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        count = chance.randint(3, 24)
        above = {n: [m for m in range(n) if chance.random() < 2 / count] for n in range(count)}
        dag = OrderedDag(range(count), above)
        for _ in range(2 * count):
            if len(dag.rank) < 2:
                break
            u, v = chance.sample([*dag.rank], 2)
            if chance.random() < 0.5:
                assert dag.add_edge(u, v) == (u not in below(dag, v))
            else:
                apart = has_path_through_others(dag, u, v)
                assert dag.has_path_through_others(u, v) == apart
                if not apart:
                    dag.merge(u, v)
            assert all(dag.rank[m] < dag.rank[n] for n in dag.rank for m in dag.above[n])


def test_merges_move_few_nodes() -> None:
    """Each node of a chain is merged with a node that reads it only and was ranked after the whole chain."""

    def merged(count: int) -> Callable[[], None]:
        chain: Mapping[int, list[int]] = {n: [n - 1] if n else [] for n in range(count)}
        dag = OrderedDag(range(2 * count), {**chain, **{count + n: [n] for n in range(count)}})

        def merge() -> None:
            for n in range(count):
                dag.merge(n, count + n)

        return merge

    assert growth(merged, 100) < 2.4
