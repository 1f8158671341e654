"""The pages that follow from the code: a text for each path below docs/."""

from __future__ import annotations

from pathlib import Path

import board_file
import c_headers
import command_line
import graphs
import operations
import python_pages
from intro import intro


def generated(root: Path) -> dict[str, str]:
    """All generated files: pages in Markdown, and the files that they link to."""
    return {
        "reference/index.md": intro("reference"),
        **python_pages.pages(),
        **board_file.pages(root),
        **operations.pages(root),
        "reference/command-line.md": command_line.page(root),
        "understand/passes.md": graphs.page(root),
        "reference/c-api.md": c_headers.api(root),
        "reference/kernel-contract.md": c_headers.contract(root),
    }
