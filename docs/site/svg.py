"""Pictures as SVG in the page: text and lines have the colours of the page, in both schemes (assets/site.css)."""

from __future__ import annotations

import html
from dataclasses import dataclass, field

CHARACTER, LINE = 6.6, 15.0  # width of a character of the pictures' font, and height of a line, in pixels


def width_of(text: str) -> float:
    """The width of a text in pixels."""
    return CHARACTER * len(text)


@dataclass
class Picture:
    """Elements of a picture; coordinates in pixels, y downwards. `label`: what it shows, for readers who see none."""

    label: str
    width: float = 0.0
    height: float = 0.0
    parts: list[str] = field(default_factory=list)

    def _cover(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """A line of text whose baseline begins, has its middle or ends at x, y."""
        left = {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        self._cover(x + (1 - left) * width_of(text), y + 4)
        attributes = f' class="{kind}"' * bool(kind) + f' text-anchor="{anchor}"' * (anchor != "start")
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{html.escape(text)}</text>')

    def box(
        self, x: float, y: float, w: float, h: float, kind: str, title: str = "", round: float = 0.0
    ) -> None:
        """A rectangle of a class of site.css; `title` is shown where the mouse is on it."""
        self._cover(x + w, y + h)
        inside = f"<title>{html.escape(title)}</title>" if title else ""
        corner = f' rx="{round:g}"' * bool(round)
        size = f'x="{x:.1f}" y="{y:.1f}" width="{max(w, 0):.1f}" height="{max(h, 0):.1f}"'
        self.parts.append(f'<rect class="{kind}" {size}{corner}>{inside}</rect>')

    def line(self, d: str, kind: str = "") -> None:
        """A path."""
        self.parts.append(f'<path class="line {kind}" d="{d}"/>'.replace(' "', '"'))

    def __str__(self) -> str:
        w, h = self.width + 2, self.height + 2
        opening = (
            f'<svg role="img" aria-label="{html.escape(self.label)}" viewBox="-1 -1 {w + 1:.0f} {h + 1:.0f}" '
        )
        size = f'width="{w:.0f}" height="{h:.0f}"'
        return f'<div class="picture">{opening}{size}>{"".join(self.parts)}</svg></div>'
