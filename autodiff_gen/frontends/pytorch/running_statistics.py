"""Running statistics of normalisation layers that are read between their updates.

Usually a layer of ours updates its statistics, also in several calls, one after the other. If something else reads
them, or a call whose result nothing needs updates them, the program computes each new value itself:

    y = F.batch_norm(x, mean, var, training=True)
    return y + mean
->
    y = F.by_mode(F.batch_norm(x, None, None, training=True), F.batch_norm(x, mean, var))
    new_mean, new_var = mean * 0.9 + F.mean(x, 0) * 0.1, var * 0.9 + F.var(x, 0) * 0.1
    return F.with_updates(y + new_mean, {mean: new_mean, var: new_var})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..imported.program import ValueRef, references
from .graph import OperatorCall
from .rules import Arguments, Converter

# Operators -> the argument that tells whether the batch's statistics are used, None if they always are.
UPDATING = {
    "aten.batch_norm": "training",
    "aten._native_batch_norm_legit_functional": "training",
    "aten.instance_norm": "use_input_stats",
    "autodiff_gen.batch_norm": None,
}
STATISTICS = ("running_mean", "running_var")
TRACKED = "num_batches_tracked"


def statistics(node: OperatorCall) -> tuple[str, ...]:
    """The names of the running mean and variance that a node updates, and of the number of batches if it updates that
    too; empty if it updates no statistics."""
    if node.key not in UPDATING:
        return ()
    used = UPDATING[node.key]
    given = [node.arguments.get(name) for name in STATISTICS]
    if (used is not None and node.arguments.get(used) is not True) or None in given:
        return ()
    return tuple(ref.name for ref in references((*given, node.arguments.get("tracked"))))


def self_computed_statistics(
    nodes: Sequence[OperatorCall], same: Mapping[str, str], outputs: Any
) -> tuple[Collection[str], Mapping[str, str]]:
    """The first results of the nodes that have to compute new statistics themselves; and for names of statistics the
    name of the weight that they are values of. same: for each weight's name in the graph, the name of the weight whose
    memory it shows."""
    shown = dict(same)
    groups: dict[str, list[OperatorCall]] = {}
    read: set[str] = set()
    for node in nodes:
        updated = statistics(node)
        others = Counter(r.name for r in references(tuple(node.arguments.values()))) - Counter(updated)
        read.update(shown[n] for n in others if n in shown)
        for name in updated:
            groups.setdefault(shown.get(name, name), []).append(node)
        shown.update((r, shown.get(n, n)) for r, n in zip(node.results[3:5], updated, strict=False))
    read.update(shown[r.name] for r in references(outputs) if r.name in shown)
    needed = _needed(nodes, outputs)

    def other(node: OperatorCall) -> bool:
        """Whether a call with momentum=None has other weights than a layer."""
        affine = references((node.arguments.get("weight"), node.arguments.get("bias")))
        return UPDATING[node.key] is None and any(r.name not in same for r in affine)

    found: set[str] = set()
    for weight, calls in groups.items():
        unneeded = any(node.results[0] not in needed for node in calls)
        if weight in read or weight not in same or (unneeded and len(calls) > 1) or any(map(other, calls)):
            found.update(node.results[0] for node in calls)
    return found, shown


def unread_counts(nodes: Sequence[OperatorCall], names: Mapping[str, str], outputs: Any) -> Collection[str]:
    """The buffers that count the batches of layers and that only the counting itself reads, by their names in the
    state_dict: they are not updated. names: a weight's name in the graph -> in the state_dict."""
    counts = {n: name for n, name in names.items() if name.rpartition(".")[2] == TRACKED}
    read: set[str] = set()
    for node in nodes:
        of = [r.name for r in references(tuple(node.arguments.values())) if r.name in counts]
        if of and node.key in ("aten.add", "aten.add_") and node.arguments.get("other") == 1:
            counts[node.results[0]] = counts[of[0]]
        elif UPDATING.get(node.key, "") is not None:
            read.update(counts[n] for n in of)
    read.update(counts[r.name] for r in references(outputs) if r.name in counts)
    return set(counts.values()) - read


def _needed(nodes: Sequence[OperatorCall], outputs: Any) -> Collection[str]:
    """The names of values that outputs depend on; every in-place operator counts as needed."""
    needed = {r.name for r in references(outputs)}
    for node in reversed(nodes):
        if needed.intersection(node.results) or node.in_place:
            needed.update(r.name for r in references(tuple(node.arguments.values())))
    return needed


def with_new_statistics(c: Converter, a: Arguments, node: OperatorCall) -> list[ValueRef | None]:
    """The results of a node that computes new statistics itself, and stores them. a: its arguments."""
    function = "instance_norm" if node.key == "aten.instance_norm" else "batch_norm"
    x, momentum, options = a["input"], a.get("momentum"), {"eps": a["eps"]}
    if momentum is None:
        count = c.emit("{} + 1", a["tracked"])
        c.update(node.arguments["tracked"], count)
        momentum = c.emit("1.0 / {}", c.emit("to", count, "f32"))
    kept = 1 - momentum if isinstance(momentum, float | int) else c.emit("1.0 - {}", momentum)
    affine = (a.get("weight"), a.get("bias"))
    old = tuple(a[name] for name in STATISTICS)
    flag = "training" if function == "batch_norm" else "use_input_stats"
    trained = c.emit(function, x, None, None, *affine, **options, **{flag: True})
    fixed = c.emit(function, x, *old, *affine, **options, **{flag: False})
    spatial = tuple(range(2, len(c.shape(x))))
    found = []
    for name, statistic, before in zip(STATISTICS, ("mean", "var"), old, strict=True):
        new = c.emit(statistic, x, spatial if function == "instance_norm" else (0, *spatial))
        new = c.emit("mean", new, 0) if function == "instance_norm" else new
        new = c.emit("{} + {}", c.emit("{} * {}", before, kept), c.emit("{} * {}", new, momentum))
        found.append(c.emit("detach", new))
        c.update(node.arguments[name], found[-1])
    return [c.emit("by_mode", trained, fixed), None, None, *found][: len(node.results)]
