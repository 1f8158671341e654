"""The terms of a loss that are means: the sums over micro-batches, and the denominators of these sums.

    loss = sum(w[y] * l) / sum(w[y]) + 0.1 * mean(z * z)

    numerator                 counts            denominator
    sum(w[y] * l)             sum(w[y])         sum(w[y])
    0.1 * mean(z * z) * n     n                 n

The sum of a numerator over micro-batches is divided by the denominator that the sums of the counts give. The result is
the term of one batch with all samples. The same holds for gradients. A denominator may be a function of sums, such as
max(sum(m), 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...ir.build import apply, constant, with_shape
from ...ir.graph import Graph
from ...ir.node import INPUT, Node, Value, topological
from ...ir.op_kinds import Elementwise, Extent, View
from ...ir.rewrite import replaced
from ...ir.traits import is_sum, key_of
from ...ir.types import Dim, planned_size


@dataclass(frozen=True)
class Term:
    """A part of a loss that is a mean, or several means with one denominator. The denominator is a function of the
    counts. samples: the number of samples if the mean is over them, None where every batch has the same number."""

    numerator: Value
    counts: tuple[Value, ...]
    denominator: Value
    is_weighted: bool = True
    samples: Value | None = None

    def divisor(self, counts: Sequence[Value]) -> Value:
        """The denominator for sums of the counts. A weighted term has 1 where the denominator is 0: no sample counts
        then, and all sums are 0."""
        found = replaced([self.denominator], dict(zip(self.counts, counts, strict=True)))[0]
        return apply("where", apply("eq", found, 0.0), 1.0, found) if self.is_weighted else found


def samples_of(step: Graph) -> Value | None:
    """The number of samples of a batch as a value; None where every batch has the same number."""
    dims = [d for v in step.inputs for d in v.shape if isinstance(d, Dim)]
    return apply("extent", extent=Dim(1, dims[0].cap)) if dims else None


def terms_of(step: Graph, trained: Sequence[Value]) -> list[Term]:
    """The terms of the loss of an entry; one mean over the samples, unless a denominator depends on inputs."""
    loss, samples = step.outputs["loss"], samples_of(step)
    nodes = topological([loss])
    from_inputs = _below([node for node in nodes if node.op is INPUT], nodes)
    weighted, rest = {}, []
    for divisors, numerator in _parts(loss, nodes, from_inputs, [v.node for v in trained]).items():
        if any(d.node in from_inputs for d in divisors):
            weighted[_product(divisors)] = numerator
        else:
            rest.append(apply("div", numerator, _product(divisors)) if divisors else numerator)
    found: dict[Value, list[Value]] = {}
    for denominator, numerator in zip(_merged(list(weighted)), weighted.values(), strict=True):
        found.setdefault(denominator, []).append(numerator)
    terms = [Term(_sum(numerators), _counts(d), d) for d, numerators in found.items()]
    if rest:
        count = constant(1.0) if samples is None else samples
        terms.append(Term(_sum(rest) if terms else loss, (count,), count, False, samples))
    return terms


Parts: TypeAlias = dict[tuple[Value, ...], Value]  # divisors that differ between batches -> the dividend


def _parts(loss: Value, nodes: Sequence[Node], from_inputs: Set[Node], trained: Sequence[Node]) -> Parts:
    """The summands of a loss by their divisors; no divisor depends on a trained parameter."""
    varying = _below([*from_inputs, *(n for n in nodes if isinstance(n.op.lower, Extent))], nodes)
    from_trained = _below(trained, nodes)
    known: dict[Value, Parts] = {}

    def parts_of(v: Value) -> Parts:
        return known.get(v, {(): v})

    for node in nodes:
        v, op = node.results[0], node.op
        if planned_size(v.type.shape) > 1 or v.type.dtype.kind != "f" or node not in varying:
            continue
        found: Parts = {}
        if isinstance(op.lower, View) and planned_size(node.operands[0].type.shape) == 1:
            for divisors, n in parts_of(node.operands[0]).items():
                found[divisors] = with_shape(n, v.type.shape)
        elif op.signs:
            for x, sign in zip(node.operands, op.signs, strict=True):
                for divisors, n in parts_of(x).items():
                    n = n if sign > 0 else apply("neg", n)
                    found[divisors] = apply("add", found[divisors], n) if divisors in found else n
        elif op.powers == (1, -1) and node.operands[1].node not in varying & from_trained:
            x, y = node.operands
            for divisors, n in parts_of(x).items():
                if y.node in varying:
                    found[(*divisors, y)] = n
                else:
                    found[divisors] = apply(op.name, n, y)
        elif op.powers == (1, 1):
            for a, b in (node.operands, node.operands[::-1]):
                (divisors, factor), *others = parts_of(b).items()
                if not found and not others and factor.node not in varying:
                    found = {(*own, *divisors): apply(op.name, n, factor) for own, n in parts_of(a).items()}
        if found.keys() - {()}:
            known[v] = found
    return parts_of(loss)


def _merged(values: Sequence[Value]) -> list[Value]:
    """The values, with the first of equal values in place of each."""
    first: dict[Any, Node] = {}
    same: dict[Value, Value] = {}
    for node in topological(values):
        known = first.setdefault(key_of(node, tuple([same[v] for v in node.operands])), node)
        same.update(zip(node.results, known.results, strict=True))
    return [same[v] for v in values]


def _below(sources: Iterable[Node], nodes: Sequence[Node]) -> set[Node]:
    """The nodes that depend on these sources."""
    found = set(sources)
    for node in nodes:
        if any(v.node in found for v in node.operands):
            found.add(node)
    return found


def _counts(denominator: Value) -> tuple[Value, ...]:
    """The sums over samples that a denominator is a function of; the denominator itself if it is no such function."""
    found: dict[Value, None] = {}
    pending = [denominator]
    for v in pending:
        lower = v.node.op.lower
        if is_sum(v.node) or isinstance(lower, View | Extent):
            found[v] = None
        elif isinstance(lower, Elementwise):
            pending += v.node.operands
        elif any(n.op is INPUT for n in topological([v])):
            return (denominator,)
    return tuple(found)


def _product(values: Sequence[Value]) -> Value:
    found = values[0]
    for v in values[1:]:
        found = apply("mul", found, v)
    return found


def _sum(values: Sequence[Value]) -> Value:
    found = values[0]
    for v in values[1:]:
        found = apply("add", found, v)
    return found
