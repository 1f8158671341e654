"""PlatformIO for tests: a separate core folder, no network, a limit on every call.

`PioCopy` is the part of the checkout that PlatformIO needs, in a folder with spaces, where builds may write.
"""

from __future__ import annotations

import configparser
import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bare_environment import bare_python
from checkout import NOT_COPIED, ROOT
from scons_object_cache import variables as of_the_cache

PARTS = (
    "SConstruct",
    "library.json",
    "autodiff_gen",
    "boards",
    "examples",
    "kernels",
    "platformio",
    "runtime",
    "site_scons",
    "tests/support",
)
EXAMPLES = configparser.ConfigParser(interpolation=None)
EXAMPLES.read(ROOT / "platformio" / "examples.ini")
QEMU = tuple(EXAMPLES["emulated"]["envs"].split(", "))


def examples() -> list[str]:
    """Names of the examples that have a platformio.ini."""
    return sorted(path.parent.name for path in (ROOT / "examples").glob("*/platformio.ini"))


def copy_parts(target: Path) -> None:
    """The sources of the library and the platform."""
    target.mkdir(exist_ok=True)
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=NOT_COPIED)
        else:
            shutil.copy2(source, target / part)


def environment(core: Path) -> dict[str, str]:
    """The caller's environment without what would reach PlatformIO by accident; `core`: its folder."""
    env = {
        k: v for k, v in os.environ.items() if not k.startswith(("PLATFORMIO_", "PYTEST_", "AUTODIFF_PYTHON"))
    }
    env.pop("PYTHONPATH", None)
    return {
        **env,
        **of_the_cache(),
        "PLATFORMIO_CORE_DIR": str(core),
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
        "PLATFORMIO_DISABLE_UPGRADE_CHECK": "true",
        "PLATFORMIO_NO_ANSI": "true",
        # Nothing uses the registry; a proxy that nobody serves makes sure that it would be seen.
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"),
    }


def pio(
    project: Path, core: Path, *words: str, timeout: int = 240, before: Sequence[str] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run `pio` in the project's folder, after the words `before`, with additional environment variables; stderr is in
    stdout, as a user sees it."""
    return subprocess.run(
        [*before, bare_python(), "-m", "platformio", *words],
        cwd=project,
        env={**environment(core), **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )


def succeed(
    project: Path, core: Path, *words: str, timeout: int = 240, before: Sequence[str] = (), **variables: str
) -> str:
    """What `pio` prints; it must exit with 0."""
    done = pio(project, core, *words, timeout=timeout, before=before, **variables)
    assert done.returncode == 0, f"pio {' '.join(words)}: exit code {done.returncode}\n{done.stdout}"
    return done.stdout


def free_port() -> int:
    """A port of this machine that nobody serves."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
