"""The host's measurements as lines and as tables in docs/benchmarks.md."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Any

from workload import title

BEGIN, END = "<!-- host -->", "<!-- /host -->"
HEADING = f"\n## Host\n\n{BEGIN}\n{END}\n"


def short(value: float) -> str:
    """Three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def line(result: dict[str, Any], ours: str) -> str:
    """One workload in one line."""
    times = result["microseconds"]
    others = (f"{k} {short(v)} ({short(v / times[ours])}x)" for k, v in times.items() if k != ours)
    return f"{result['workload']}: {short(times[ours])} us; " + ", ".join(others)


def text(record: dict[str, Any], ours: str, eager: str) -> str:
    """The section's text, with a table of the workloads and one of the networks, for which fewer programs exist."""
    head = f"Board `{record['board']}`, kernels `{','.join(record['kernels'])}`; {record['versions']}."
    tables = [
        _table(record, list(results), ours, excluded)
        for excluded, results in groupby(record["results"], lambda r: r["excluded"])
    ]
    return "\n\n".join([head, *tables])


def _table(record: dict[str, Any], results: list[dict[str, Any]], ours: str, excluded: list[str]) -> str:
    """The results by all programs except `ours`, the first column, and those that are excluded."""
    others = [p for p in (*record["programs"], *record["absent"]) if p not in (ours, *excluded)]
    rows = [["", f"{ours}, us", *others], ["---", *("---:" for _ in range(len(others) + 1))]]
    for result in results:
        times = result["microseconds"]
        missing = {o: "other losses" if o in result["disagree"] else "absent" for o in others}
        cells = [
            f"{short(times[o])} ({short(times[o] / times[ours])}x)" if o in times else missing[o]
            for o in others
        ]
        rows.append([title(result["workload"]), short(times[ours]), *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def write(path: Path, section: str) -> None:
    """Write the section between its markers; they are appended to the file where they are missing."""
    page = path.read_text(encoding="utf-8") if path.is_file() else "# Benchmarks\n"
    if BEGIN not in page:
        page = page.rstrip("\n") + "\n" + HEADING
    pattern = re.escape(BEGIN) + r"\n.*?" + re.escape(END)
    page = re.sub(pattern, lambda _: f"{BEGIN}\n\n{section}\n\n{END}", page, flags=re.DOTALL)
    path.write_text(page, encoding="utf-8")
