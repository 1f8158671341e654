"""The pages of docs/learn, and how-it-works.md, followed command by command from an empty folder.

Not executed, as the tools of the tests do not have the programs: sessions of gdb and VS Code in `debug`, and tasks of
FreeRTOS and Zephyr in `threads`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import ROOT
from console_pages import Command, matches, run, steps
from learn_environment import checkout_copy, environment

LEARN = ROOT / "docs" / "learn"
NEEDS = {
    "chip": ("qemu",),
    "data": ("qemu",),
    "debug": ("qemu",),
    "first-board": ("qemu",),
    "fleet": ("cc", "qemu"),
    "kernel": ("cc", "qemu"),
    "memory": (),
    "model": ("cc", "qemu", "torch"),
    "moving": ("cc",),
    "project": ("cc", "qemu"),
    "threads": ("qemu",),
}


FOLLOWED = {f"learn/{page}": needs for page, needs in NEEDS.items()} | {"how-it-works": ()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[getattr(pytest.mark, n) for n in needs]) for page, needs in FOLLOWED.items()],
)
def test_a_page_shows_what_its_commands_print(page: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    found = steps((ROOT / "docs" / f"{page}.md").read_text())
    if page == "learn/first-board":
        checkout_copy(folder / "autodiff_gen")
    assert sum(isinstance(step, Command) for step in found) >= 3
    for command, printed, code in run(found, folder, environment(tmp_path / "bin")):
        assert (code != 0) == command.fails, f"$ {command.line}\nexit code {code}\n{printed}"
        assert matches(command.shown, printed), (
            f"$ {command.line}\n{printed}\nis not what the page shows:\n{command.shown}"
        )


def test_every_page_is_followed() -> None:
    assert {path.stem for path in LEARN.glob("*.md")} == {*NEEDS, "index"}


def test_every_page_says_what_it_needs() -> None:
    """The same line, but for the page that begins with a clone."""
    lines = {
        page: [line for line in (LEARN / f"{page}.md").read_text().split("\n") if line.startswith("Needed: ")]
        for page in NEEDS
    }
    assert "git clone ADDRESS autodiff_gen" in lines.pop("first-board")[0]
    assert len({line for (line,) in lines.values()}) == 1


PAGE = """\
```python title="a.py"
print(1); print(2); print(0.5)
```

```console
$ python a.py
1
...
0...
$ cd ..
$ python no.py
error: ...
```
"""


def test_the_runner_writes_files_and_keeps_the_folder(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    done = run(steps(PAGE), tmp_path / "project", environment(tmp_path / "bin"))
    assert [(c.line, code) for c, _, code in done] == [("python a.py", 0), ("cd ..", 0), ("python no.py", 2)]
    assert [matches(c.shown, printed) for c, printed, _ in done] == [True, True, False]
    assert [c.fails for c, _, _ in done] == [False, False, True]


@pytest.mark.parametrize(
    "shown, printed, same",
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nb\nc\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("a\n...\nc\n", "a\nc\n", True),
        ("a\n...\nc\n", "a\nb\n", False),
        ("loss ... of 3\n", "loss 0.25 of 3\n", True),
        ("loss 0.25\n", "loss 0.26\n", False),
        ("a.c\n", "abc\n", False),
        ("a ... b\n", "a x\nb\n", False),
        ("", "anything\n", True),
    ],
)
def test_output_is_compared(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) == same
