"""A class name has one meaning: no two modules of the compiler define public classes of one name."""

from __future__ import annotations

import ast
from collections import defaultdict

from checkout import ROOT

PACKAGE = ROOT / "autodiff_gen"


def test_class_names_are_unique() -> None:
    homes = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(PACKAGE)))
    assert len(homes) > 400
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
