"""A checkout with `./scons`, the shell script, and a Python that only writes down how it is called."""

from __future__ import annotations

import shutil
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from autodiff_gen.targets.schema import DEFAULT_BOARD

# Replaces python3 and the venv's python. Logs one line per call; `-m venv` copies itself.
PYTHON = r"""#!/bin/sh
log() { printf '%s\n' "$*" >>"$STUB_LOG"; }
case "$*" in
    '-c '*) exit 0 ;;
    '-m venv '*)
        log venv
        for folder in "$@"; do :; done
        rm -rf "$folder"
        mkdir -p "$folder/bin" "$folder/lib/python3.11/site-packages"
        cp "$0" "$folder/bin/python"
        ;;
    *'-m pip '*)
        for file in "$@"; do :; done
        log "pip $(basename "$file")"
        env | grep -E '^(PYTHONHOME|PYTHONPATH|PIP_USER)=' | sed 's/^/leak /' >>"$STUB_LOG"
        env | grep -E '^(PIP_INDEX_URL|https_proxy|PIP_CERT)=' | sed 's/^/kept /' >>"$STUB_LOG"
        [ -z "${STUB_SLEEP-}" ] || sleep "$STUB_SLEEP"
        [ "${STUB_FAIL-}" != "$(basename "$file")" ] || exit 1
        [ ! -e "$STUB_LOG.pins" ] || sed -i "/^$(basename "$file" .txt) /d" "$STUB_LOG.pins"
        ;;
    *'/site_scons/pins.py '*' runtime docs test torch') [ ! -e "$STUB_LOG.pins" ] || cat "$STUB_LOG.pins" ;;
    *'-m autodiff_gen.targets.toolchain '*)
        log probe
        [ -z "${STUB_MISSING-}" ] || [ -e "$STUB_LOG.apt" ] || { echo "$STUB_MISSING"; exit 4; }
        echo sh
        ;;
    *'-m autodiff_gen fetch '*)
        log "fetch ${*##* }"
        [ "${STUB_FAIL-}" != fetch ] || exit 1
        ;;
    *'-m SCons '*)
        [ -z "${AUTODIFF_CHECK-}" ] || { log "words"; [ "${STUB_FAIL-}" != words ]; exit; }
        log "SCons in $PWD from $AUTODIFF_LAUNCH_DIR:$(printf ' <%s>' "$@")"
        ;;
    *) log "unknown $*" ;;
esac
"""


SETUP = ["venv", "probe", "pip runtime.txt"]


@dataclass
class Checkout:
    """A copy of the files that the wrapper reads, in a new folder."""

    root: Path
    log: Path
    env: dict[str, str] = field(default_factory=dict)

    def command(self, *words: str, script: Path | None = None) -> list[str]:
        return [str(script or self.root / "scons"), *words]

    def run(self, *words: str, script: Path | None = None, cwd: Path | None = None) -> list[str]:
        """Run it; the log's new lines; the last is SCons' command."""
        before = len(self.lines())
        done = self.attempt(*words, script=script, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return self.lines()[before:]

    def attempt(
        self, *words: str, script: Path | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words, script=script),
            cwd=cwd or self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def make_checkout(tmp_path: Path, root: Path, name: str) -> Checkout:
    tree = tmp_path / name
    (tree / "autodiff_gen").mkdir(parents=True)
    (tree / "boards/arch").mkdir(parents=True)
    script = (root / "scons").read_text()
    assert f"\nboard=${{board:-{DEFAULT_BOARD}}}\n" in script
    assert " /usr/bin/python3 python3 " in script
    write_program(tree / "scons", script.replace(" /usr/bin/python3 ", " "))
    shutil.copytree(root / "requirements", tree / "requirements")
    shutil.copy(root / "autodiff_gen/targets/toolchain.py", tree / "autodiff_gen")
    (tree / "boards/stm32.toml").write_text("schema = 1\n")
    (tree / "boards/arch/core.toml").write_text("schema = 1\n")
    write_program(tmp_path / "bin/python3", PYTHON)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    env = {"HOME": str(tmp_path), "PATH": path, "STUB_LOG": str(tmp_path / "log")}
    return Checkout(tree, tmp_path / "log", env)


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def scons_words(lines: list[str]) -> str:
    assert lines[-1].startswith("SCons in "), lines
    return lines[-1]
