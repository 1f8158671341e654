"""Draw a terminal's text as an SVG: `./scons model=mnist run | python docs/images/terminal.py TITLE > run.svg`."""

import html
import sys

CHAR, LINE, PAD = 8.43, 20, 24
NBSP = "&#160;"  # runs of blanks survive every renderer


def row(line: str, y: int) -> str:
    kind = "c" if line.startswith("$") else "t"
    return f'<text x="{PAD}" y="{y}" class="{kind}">{html.escape(line).replace(" ", NBSP)}</text>'


def svg(text: str, title: str) -> str:
    lines = text.expandtabs().rstrip("\n").split("\n")
    width = max(map(len, lines)) * CHAR + 2 * PAD
    height = len(lines) * LINE + 2 * PAD + 24
    rows = "\n".join(row(line, PAD + 40 + k * LINE) for k, line in enumerate(lines))
    dots = "".join(f'<circle cx="{PAD + 4 + 18 * k}" cy="20" r="5" fill="#50596b"/>' for k in range(3))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"
 role="img" xml:space="preserve">
<title>{html.escape(title)}</title>
<style>text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace }}
.t {{ fill: #d7dde8 }} .c {{ fill: #8fd3a6 }}</style>
<rect width="100%" height="100%" rx="8" fill="#1d222c"/>{dots}
{rows}
</svg>
"""


if __name__ == "__main__":
    sys.stdout.write(svg(sys.stdin.read(), " ".join(sys.argv[1:]) or "terminal"))
