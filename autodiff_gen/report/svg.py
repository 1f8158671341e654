"""Pictures as SVG in a page, whose style sheet gives text, lines and boxes their colours, in both schemes."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

CHARACTER, LINE = 6.6, 15.0  # width of a character of the pictures' font, and height of a line, in pixels


def width_of(text: str) -> float:
    """The width of a text in pixels."""
    return CHARACTER * len(text)


@dataclass
class Picture:
    """Elements of a picture; coordinates in pixels, y downwards. `label`: the content, for screen readers; `role`:
    "img", or "group" of a picture whose elements can be selected."""

    label: str
    width: float = 0.0
    height: float = 0.0
    parts: list[str] = field(default_factory=list)
    role: str = "img"

    def cover(self, x: float, y: float) -> None:
        """Make the picture large enough for this point."""
        self.width, self.height = max(self.width, x), max(self.height, y)

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """A line of text whose baseline begins, has its middle or ends at x, y."""
        left = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        self.cover(x + (1 - left) * width_of(text), y + 4)
        attributes = f' class="{kind}"' * bool(kind) + f' text-anchor="{anchor}"' * (anchor != "start")
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{html.escape(text)}</text>')

    def box(
        self, x: float, y: float, w: float, h: float, kind: str, title: str = "", round: float = 0.0
    ) -> None:
        """A rectangle of a class of the style sheet; `title` is shown where the mouse is on it."""
        self.cover(x + w, y + h)
        inside = f"<title>{html.escape(title)}</title>" if title else ""
        corner = f' rx="{round:g}"' * bool(round)
        size = f'x="{x:.1f}" y="{y:.1f}" width="{max(w, 0):.1f}" height="{max(h, 0):.1f}"'
        self.parts.append(f'<rect class="{kind}" {size}{corner}>{inside}</rect>')

    def line(self, d: str, kind: str = "") -> None:
        """A path."""
        attribute = f' class="{kind}"' * bool(kind)
        self.parts.append(f'<path{attribute} d="{d}"/>')

    @contextmanager
    def group(self, attributes: Mapping[str, str]) -> Iterator[None]:
        """Shapes drawn inside become one element with these attributes; without attributes no element is added."""
        if attributes:
            given = "".join(f' {name}="{html.escape(value)}"' for name, value in attributes.items())
            self.parts.append(f"<g{given}>")
        yield
        if attributes:
            self.parts.append("</g>")

    @property
    def _shown(self) -> str:
        w, h = self.width + 2, self.height + 2
        size = f'viewBox="-1 -1 {w + 1:.0f} {h + 1:.0f}" width="{w:.0f}" height="{h:.0f}"'
        return f'role="{self.role}" aria-label="{html.escape(self.label)}" {size}'

    def file(self, style: str) -> str:
        """The picture as a file with its own style sheet, on a background of the class `page`."""
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" {self._shown}>\n<style>{style}</style>'
        page = '<rect class="page" x="-1" y="-1" width="100%" height="100%" rx="6"/>'
        return "\n".join([opening, page, *self.parts, "</svg>", ""])

    def __str__(self) -> str:
        return f'<div class="picture"><svg {self._shown}>{"".join(self.parts)}</svg></div>'
