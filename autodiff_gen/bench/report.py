"""A benchmark's record as text: the cost of each step and layer, the sizes, and the changes since the last run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..report.text_table import table
from ..targets.installation import title

Record = Mapping[str, Any]


def report(record: Record, last: Record | None) -> str:
    """The whole report."""
    head = (
        f"{_named(record)} on {record['board']} ({record['core']}), kernels {','.join(record['kernels'])}, "
        f"for {record['profile']}, batch {record['batch']}: instructions of one call, mean of {record['steps']}"
    )
    parts = [head, _steps(record), _layers(record), _totals(record), *changes(record, last)]
    return "\n\n".join(parts)


def _named(record: Record) -> str:
    """The name of the model, after its title if it is a network of the benchmark."""
    name = str(record["model"])
    return name if title(name) == name else f"{title(name)} ({name})"


def _steps(record: Record) -> str:
    rows = []
    for entry in dict.fromkeys(r["entry"] for r in record["graph_steps"]):
        rows.append((entry, *[""] * 7))
        members = [r for r in record["graph_steps"] if r["entry"] == entry]
        for r in sorted(members, key=lambda r: not r["step"]):
            rows.append((f"  {r['step']}", r["layer"], r["phase"], *_numbers(r), _what(r)))
    head = ("step", "layer", "phase", "instructions", "cycles", "MACs", "per MAC", "computation")
    return table(head, rows, right=(3, 4, 5, 6))


def _what(row: Record) -> str:
    text = row["text"] if len(row["text"]) <= 60 else row["text"][:57] + "..."
    return f"{text} ({', '.join(row['kernels'])})" if row["kernels"] else str(text)


def _layers(record: Record) -> str:
    rows = [(r["entry"], r["layer"] or "-", r["phase"], *_numbers(r)) for r in record["layers"]]
    return table(("entry", "layer", "phase", *_HEAD), rows, right=(3, 4, 5, 6))


_HEAD = ("instructions", "cycles", "MACs", "per MAC")


def _numbers(row: Record) -> tuple[str, str, str, str]:
    per = row["instructions_per_mac"]
    return (
        number(row["instructions"]),
        "-" if row["cycles"] is None else number(row["cycles"]),
        number(row["macs"]) if row["macs"] else "-",
        "-" if per is None else f"{per:.2f}",
    )


def number(x: float) -> str:
    """x as text with thousands separators, and with one decimal unless it is integral."""
    return f"{x:,}" if x == int(x) else f"{x:,.1f}"


def _totals(record: Record) -> str:
    """The entries, measured in the ordinary program without probes; and the sizes."""
    rows = [(r["entry"], *_numbers(r)) for r in record["entries"]]
    text = record["text"]
    parts = ", ".join(f"{k} {text[k]:,}" for k in ("trainer", "kernels", "ag_math"))
    return "\n".join(
        [
            table(("without probes", *_HEAD), rows, right=(1, 2, 3, 4)),
            f"text {text['together']:,} bytes: {parts}",
            f"stack {record['stack']:,} bytes at most; state and arena {record['state_and_arena']:,} bytes",
            "cycles are an estimate (autodiff_gen/bench/cycle_model.py)",
        ]
    )


# Cycles of a board


def cycles_report(record: Record) -> str:
    """The record of cycles that a board measured, as text."""
    rows = []
    for entry in dict.fromkeys(r["entry"] for r in record["graph_steps"]):
        members = [r for r in record["graph_steps"] if r["entry"] == entry]
        rows.append((entry, "", "", number(sum(r["cycles"] for r in members)), "", "", ""))
        for r in sorted(members, key=lambda r: not r["step"]):
            per = f"{r['cycles'] / r['macs']:.2f}" if r["macs"] else "-"
            macs = number(r["macs"]) if r["macs"] else "-"
            rows.append((f"  {r['step']}", r["layer"], r["phase"], number(r["cycles"]), macs, per, _what(r)))
    head = (
        f"{_named(record)} on {record['board']} ({record['core']}), kernels {','.join(record['kernels'])}, "
        f"batch {record['batch']}: cycles of one call, mean of {record['steps']}"
    )
    titles = ("step", "layer", "phase", "cycles", "MACs", "per MAC", "computation")
    return f"{head}\n\n{table(titles, rows, right=(3, 4, 5))}"


# Kernels


def kernel_report(record: Record, last: Record | None) -> str:
    """The kernel record of a board, with the last record's instructions per MAC where they differ."""
    before = {_case(r): r["instructions_per_mac"] for r in (last or {}).get("cases", ())}
    rows = []
    for r in record["cases"]:
        was = before.get(_case(r), r["instructions_per_mac"])
        note = "" if was == r["instructions_per_mac"] else f"{was:.2f} before"
        rows.append((r["family"], r["sizes"], *_numbers(r), r["symbol"], note))
    head = f"kernels {','.join(record['kernels'])} on {record['board']} ({record['core']}): instructions of one call"
    calls = table(("kernel", "sizes", *_HEAD, "symbol", ""), rows, right=(2, 3, 4, 5))
    return f"{head}\n\n{calls}\nstack {record['stack']:,} bytes at most, with the stack of the program that calls them"


def _case(row: Record) -> tuple[str, str]:
    return row["family"], row["sizes"]


# Changes


def changes(record: Record, last: Record | None) -> Iterator[str]:
    """A table of the differences from the last record; nothing without one."""
    if last is None:
        return
    if any(last.get(k) != record[k] for k in ("steps", "batch", "kernels", "profile", "board")):
        yield "the last record is of other steps, batch, kernels or profile: not compared"
        return
    before, now = _compared(last), _compared(record)
    rows = [_change(k, before.get(k), v) for k, v in now.items() if before.get(k) != v]
    rows += [_change(k, v, None) for k, v in before.items() if k not in now]
    if not rows:
        yield "all as in the last record"
        return
    yield table(("since the last record", "before", "now", "ratio", ""), rows, right=(1, 2, 3))


def _compared(record: Record) -> dict[str, float]:
    values = {f"{r['entry']}, instructions": r["instructions"] for r in record["entries"]}
    for r in record["graph_steps"]:
        key = f"{r['entry']}: {r['text']}"
        values[key] = values.get(key, 0) + r["instructions"]
    values |= {f"text of {k}, bytes": v for k, v in record["text"].items()}
    return {**values, "stack, bytes": record["stack"], "state and arena, bytes": record["state_and_arena"]}


def _change(what: str, before: float | None, now: float | None) -> tuple[str, str, str, str, str]:
    texts = ["-" if x is None else number(x) for x in (before, now)]
    what = what if len(what) <= 70 else what[:67] + "..."
    if before is None or now is None:
        return (what, *texts, "", "new" if before is None else "gone")  # type: ignore[return-value]
    ratio = f"{now / before:.3f}" if before else ""
    return (what, *texts, ratio, "more" if now > before else "less")  # type: ignore[return-value]
