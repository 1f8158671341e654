"""The templates of a project's files."""

from __future__ import annotations

import functools
from typing import Any

import jinja2

from ...targets.installation import __version__


@functools.cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("autodiff_gen.model.project"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(template: str, **values: Any) -> str:
    """The text of a file; an undefined name is an error."""
    return _templates().get_template(f"{template}.j2").render(version=__version__, **values)
