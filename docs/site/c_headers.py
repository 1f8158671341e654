"""C headers as pages: each declaration after its comment; enumerations and structs as tables of their members."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from intro import intro

from autodiff_gen.codegen.files import emit
from autodiff_gen.kernels import registry
from autodiff_gen.kernels.table import Backend
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.targets import board

# The headers that a program of a user includes, with what each is for.
RUNTIME = {
    "ag_io.h": "Callbacks that read and write",
    "ag_console.h": "Text output",
    "ag_samples.h": "Streams of samples",
    "ag_store.h": "Checkpoints in flash",
    "ag_flash.h": "The flash of the board",
    "ag_link.h": "The board's end of the link",
    "ag_system.h": "The machine",
    "ag_main.h": "Shared by main programs",
}

_BLOCK = re.compile(r"(?P<comment>/\*.*?\*/\n)?(?P<code>(?:(?!/\*)[^\n]+\n)(?:[^\n]+\n)*)", re.DOTALL)
_HIDDEN = re.compile(r"^#.*(?:\\\n.*)*\n?|^extern \"C\" \{\n|^\}\n", re.MULTILINE)
_LAST = re.compile(r"/\*(?:(?!\*/).)*\*/\s*\Z", re.DOTALL)  # a comment that no declaration follows


def api(root: Path) -> str:
    """The page reference/c-api.md."""
    program = compile_file(load_file("xor").made, "xor", None, board.load("stm32"))
    header = next(text for name, text in emit(program).items() if name.endswith(".h"))
    parts = [intro("c-api"), _shown(header), _statuses(root)]
    for name, title in RUNTIME.items():
        declared = _shown((root / "runtime" / name).read_text())
        parts.append(f'## {title}\n\n`#include "{name}"`\n\n{declared}')
    return "\n\n".join(parts) + "\n"


def _statuses(root: Path) -> str:
    """Status by status: the number, its words, and which of the functions return it."""
    text = (root / "runtime" / "ag_status.h").read_text()
    words = dict(re.findall(r"case (AG_STATUS_\w+):\n\s*return \"(.*?)\";", text))
    rows = []
    for name, value in re.findall(r"(AG_STATUS_\w+) = (-?\d+)", text):
        short = name.removeprefix("AG_STATUS_")
        own = f"NAME_{short}" if int(value) >= 0 else f"NAME_ERR_{short}"
        rows.append(f"| {value} | `{own}` | {words[name]} |")
    about = (
        "After a negative status the weights are as before the call.\n`NAME_strstatus` returns these words."
    )
    return f"## Statuses\n\n{about}\n\n| value | name | in words |\n|---|---|---|\n" + "\n".join(rows)


def contract(root: Path) -> str:
    """The page reference/kernel-contract.md."""
    backends = [registry.load_backend(root / "kernels" / n, root / "kernels") for n in registry.available()]
    text = (root / "kernels" / "ag_kernels.h").read_text()
    kernels = [
        (found["comment"], found["code"]) for found in _BLOCK.finditer(text) if "AG_KERNEL(" in found["code"]
    ]
    parts = [intro("kernel-contract"), _prose(re.search(r"/\*.*?\*/", text, re.DOTALL)[0])]
    for comment, code in kernels:
        names = re.findall(r"^AG_KERNEL\((\w+)\)", code, re.MULTILINE)
        if not names:
            continue  # the macro itself
        table = "\n".join(_backends(names, backends))
        declared = re.sub(r"^AG_KERNEL.*\n", "", code, flags=re.MULTILINE).rstrip()
        parts.append(
            f"## {', '.join(names)}\n\n{_prose(comment)}\n\n```c\n{declared}\n```\n\n"
            f"| backend | kernels | calls |\n|---|---|---|\n{table}"
        )
    return "\n\n".join(parts) + "\n"


def _shown(text: str) -> str:
    """The declarations of a header, each under a heading of its name."""
    intro, end, rest = text.partition("*/\n")
    parts = [_prose(intro + end)]
    for found in _BLOCK.finditer(_LAST.sub("", _HIDDEN.sub("", rest))):
        code = found["code"].rstrip()
        title = _name(code)
        if title is not None:
            parts.append(f"### {title}\n\n{_prose(found['comment'] or '')}\n\n{_declaration(code)}")
        elif not code.startswith("static"):
            parts.append(f"{_prose(found['comment'] or '')}\n\n```c\n{code}\n```")
    return "\n\n".join(parts)


def _backends(names: list[str], backends: list[Backend]) -> Iterator[str]:
    """For each backend the kernels of these names that it has, by the conditions of their rows."""
    for backend in backends:
        rows: dict[str, dict[str, None]] = {}
        for kernel in backend.kernels:
            if kernel.name in names:
                when = " and ".join(f"`{c}`" for c in kernel.when) or "all"
                rows.setdefault(when, {})[f"`{kernel.name}`"] = None
        for when, kernels in rows.items():
            yield f"| {backend.name} | {', '.join(kernels)} | {when} |"


def _name(code: str) -> str | None:
    """The declared names, with commas; None for an enumeration without a name."""
    if code.startswith("enum"):
        return None
    functions = re.findall(r"^(?:typedef )?[\w ]+?[ *]+(\w+)\((?!\()", code, re.MULTILINE)
    others = re.findall(r"^\} (\w+);", code, re.MULTILINE) or re.findall(
        r"^extern [\w *]+?(\w+)[;\[]", code, re.MULTILINE
    )
    return ", ".join(others or functions) or None


def _declaration(code: str) -> str:
    return f"```c\n{code}\n```"


def _prose(comment: str) -> str:
    """The text of a comment as a paragraph, an indented part as it is."""
    text = comment.strip().removeprefix("/*").removesuffix("*/")
    lines = [re.sub(r"^\s*\* ?", "", line) for line in text.splitlines()]
    parts = re.split(r"\n\s*\n|\n(?=Checks |Does not check )", "\n".join(lines))
    return "\n\n".join(
        part if part.startswith("    ") else _escaped(" ".join(part.split())) for part in parts
    )


def _escaped(text: str) -> str:
    """Escape brackets, stars and underscores, so that mathematics keeps them; text in backticks is code."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"([\\*_\[\]])", r"\\\1", html.escape(part, quote=False)) for part in parts[::2]]
    return "".join(parts)
