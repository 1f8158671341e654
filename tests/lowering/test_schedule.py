"""The order of steps: it respects what must come first, and on small graphs no order has a lower peak."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from call_count import growth

from autodiff_gen.ir.arena import problem
from autodiff_gen.ir.arena.order import order_steps


@dataclass
class Steps:
    before: list[list[int]] = field(default_factory=list)
    makes: list[dict[int, int]] = field(default_factory=list)
    reads: list[list[int]] = field(default_factory=list)
    reuses: list[list[tuple[int, list[int]]]] = field(default_factory=list)
    scratch: list[int] = field(default_factory=list)

    def ordered(self) -> list[int]:
        size = {b: n for m in self.makes for b, n in m.items()}
        sizes = tuple(size[b] for b in range(len(size)))
        before, makes, reads = (tuple(map(tuple, each)) for each in (self.before, self.makes, self.reads))
        reuses = tuple(tuple((made, tuple(of)) for made, of in pairs) for pairs in self.reuses)
        return [*order_steps(problem.Steps(before, makes, reads, reuses, tuple(self.scratch), sizes))]

    def peak(self, order: list[int]) -> int:
        """By simulation: a result is alive until its last reader is done; it may have the memory
        of an operand that is read for the last time."""
        size = {b: n for m in self.makes for b, n in m.items()}
        left = {b: sum(b in r for r in self.reads) for b in size}
        live = peak = 0
        for s in order:
            live += sum(self.makes[s].values())
            peak = max(peak, live + self.scratch[s] - self.saved(s, size, left))
            live -= sum(size[b] for b in self.makes[s] if left[b] == 0)
            for b in set(self.reads[s]) & size.keys():
                left[b] -= 1
                live -= size[b] if left[b] == 0 else 0
        return peak

    def saved(self, s: int, size: dict[int, int], left: dict[int, int]) -> int:
        """The bytes of step s's results in the memory of its operands."""
        taken: set[int] = set()
        total = 0
        for made, of in self.reuses[s]:
            dying = [b for b in of if left[b] == 1 and b not in taken]
            taken.update(dying[:1])
            total += size[made] if dying else 0
        return total

    def every_order(self, done: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
        count = len(self.before)
        if len(done) == count:
            return [done]
        free = [s for s in range(count) if s not in done and all(p in done for p in self.before[s])]
        return [order for s in free for order in self.every_order((*done, s))]


def random_steps(seed: int, largest: int = 7) -> Steps:
    r = random.Random(seed)
    out, makers = Steps(), []
    for s in range(r.randint(1, largest)):
        reads = [b for b in range(len(makers)) if r.random() < 0.3]
        out.reads.append(reads)
        out.before.append(sorted({makers[b] for b in reads} | {p for p in range(s) if r.random() < 0.1}))
        out.makes.append({})
        for _ in range(r.choice((0, 1, 1, 1, 2))):
            out.makes[s][len(makers)] = r.choice((1, 5, 5, 20))
            makers.append(s)
        size = {b: n for m in out.makes for b, n in m.items()}
        same = [(b, [a for a in reads if size[a] == size[b]]) for b in out.makes[s]]
        out.reuses.append([(b, of) for b, of in same if of and r.random() < 0.5])
        out.scratch.append(r.choice((0, 0, 0, 7)))
    return out


@pytest.mark.parametrize("block", range(10))
def test_no_order_has_a_lower_peak(block: int) -> None:
    for seed in range(block * 30, block * 30 + 30):
        steps = random_steps(seed)
        order = steps.ordered()
        assert sorted(order) == list(range(len(steps.before))), f"seed {seed}"
        best = min(steps.peak(list(o)) for o in steps.every_order())
        assert tuple(order) in steps.every_order(), f"seed {seed}"
        assert steps.peak(order) == best, f"seed {seed}"


def test_same_input_same_order() -> None:
    for seed in range(20):
        steps = random_steps(seed, 12)
        assert steps.ordered() == steps.ordered()


def test_ties_keep_the_given_order() -> None:
    steps = Steps([[] for _ in range(6)], [{} for _ in range(6)], [[]] * 6, [[]] * 6, [0] * 6)
    assert steps.ordered() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("shape", ["chain", "branches", "backward", "updates"])
def test_large_graphs(shape: str) -> None:
    """A long chain, many independent branches that meet, a backward pass, and one with updates: 600 steps each."""
    steps = shaped(shape, 600)
    order = steps.ordered()
    assert all(order.index(p) < order.index(s) for s in range(0, 600, 37) for p in steps.before[s])
    assert growth(lambda count: shaped(shape, count).ordered, 300) < 2.4


def shaped(shape: str, count: int) -> Steps:
    if shape == "chain":
        reads = [[s - 1] if s else [] for s in range(count)]
    elif shape == "branches":
        reads = [*([] for _ in range(count - 1)), list(range(count - 1))]
    elif shape == "updates":
        return training(count // 4)
    else:
        half = count // 2
        reads = [[s - 1] if s else [] for s in range(half)]
        reads += [sorted({s - 1, count - 1 - s}) for s in range(half, count)]
    makes = [{s: 4 * (1 + s % 3)} for s in range(count)]
    return Steps([list(r) for r in reads], makes, reads, [[]] * count, [0] * count)


def training(layers: int) -> Steps:
    """Of layers with an activation: outputs, gradients before and after it, updates that need what all of them read."""
    masked, passed, scalar, update = layers, 2 * layers, 3 * layers, 3 * layers + 1
    reads = [[s - 1] if s else [] for s in range(layers)]
    reads += [[k, passed + k + 1 if k < layers - 1 else layers - 1] for k in range(layers)]
    reads += [[masked + k] for k in range(layers)]
    reads.append([])
    reads += [[masked + k, scalar, *([k - 1] if k else [])] for k in range(layers)]
    makes = [*({s: 64} for s in range(scalar)), {scalar: 4}, *({} for _ in range(layers))]
    reuses = [[(s, reads[s])] if masked <= s < passed else [] for s in range(len(reads))]
    before = [list(r) for r in reads]
    for k in range(layers):
        before[update + k].append(passed + k)  # which reads the updated state
    return Steps(before, makes, reads, reuses, [0] * len(reads))
