"""Check that a board's toolchain is installed, by the probes of its profile. Stdlib only.

`python -m autodiff_gen.targets.toolchain BOARD [--trust-board]` prints the programs that passed and exits with 0, or
prints the Debian packages to install and exits with 4. `*`: all boards of the tree and the tools of the tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from ..errors import AutodiffError
from . import board as boards
from .allowed import TRUST

MISSING = 4

# Libraries that Qt WebEngine of PyPI, in which pages are tested, takes from the system, by packages that
# have these names in all releases.
_PAGES = {
    "libasound2-dev": "libasound.so.2",
    "libdbus-1-3": "libdbus-1.so.3",
    "libegl1": "libEGL.so.1",
    "libfontconfig1": "libfontconfig.so.1",
    "libgbm1": "libgbm.so.1",
    "libgl1": "libGL.so.1",
    "libgssapi-krb5-2": "libgssapi_krb5.so.2",
    "libnss3": "libnss3.so",
    "libxcb-dri3-0": "libxcb-dri3.so.0",
    "libxcomposite1": "libXcomposite.so.1",
    "libxdamage1": "libXdamage.so.1",
    "libxfixes3": "libXfixes.so.3",
    "libxkbcommon0": "libxkbcommon.so.0",
    "libxkbfile1": "libxkbfile.so.1",
    "libxrandr2": "libXrandr.so.2",
    "libxtst6": "libXtst.so.6",
}

_FUZZED = "int LLVMFuzzerTestOneInput(void) { return 0; }"

# Tools that `./scons test` needs in addition to the boards' toolchains: (packages, probe).
TESTS = (
    (("gcc", "libc6-dev"), ("gcc", "-xc", "-fsyntax-only", "-include", "stdio.h", "/dev/null")),
    (("g++",), ("g++", "--version")),
    (("libopenblas-dev",), ("gcc", "-xc", "-fsyntax-only", "-include", "cblas.h", "/dev/null")),
    (("clang",), ("clang", "--version")),
    (("clang-tidy",), ("clang-tidy", "--version")),
    (("cppcheck",), ("cppcheck", "--version")),
    (("libclang-rt-dev",), ("sh", "-c", f"echo '{_FUZZED}' | clang -fsanitize=fuzzer -xc - -o /dev/null")),
    (("cmake", "make"), ("cmake", "--version")),
    (("git",), ("git", "--version")),
    (("strace",), ("strace", "--version")),
    (("valgrind",), ("valgrind", "--version")),
    *(((name,), ("sh", "-c", f"/sbin/ldconfig -p | grep -F '{file} '")) for name, file in _PAGES.items()),
    (("fonts-dejavu-core",), ("test", "-d", "/usr/share/fonts/truetype")),
)

Needs = list[tuple[tuple[str, ...], tuple[str, ...]]]


def passes(probe: Iterable[str]) -> bool:
    """True if the command exists and exits with 0."""
    try:
        done = subprocess.run(
            list(probe),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def needs(name: str, trusted: bool = False) -> Needs:
    """(packages, probe) pairs of one board, or of `*`. Raises BoardError."""
    chosen = boards.names() if name == "*" else [name]
    pairs: Needs = list(TESTS) if name == "*" else []
    for board in (boards.load(board, trusted=trusted) for board in chosen):
        pairs += [(board.toolchain.packages, probe) for probe in board.toolchain.probes]
    return list(dict.fromkeys(pairs))


def missing(pairs: Needs) -> list[str]:
    """Debian packages to install, in the order of the profiles, each once."""
    result: dict[str, None] = {}
    verdicts: dict[tuple[str, ...], bool] = {}
    for packages, probe in pairs:
        if probe not in verdicts:
            verdicts[probe] = passes(probe)
        if not verdicts[probe]:
            result |= dict.fromkeys(packages)
    return list(result)


def install_hint(board: boards.BoardSpec) -> str:
    """The command that installs a board's toolchain on Debian."""
    return "sudo apt-get install -y --no-install-recommends " + " ".join(board.toolchain.packages)


def main(argv: list[str]) -> int:
    try:
        pairs = needs(argv[0], TRUST in argv[1:])
    except AutodiffError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    packages = missing(pairs)
    if packages:
        print(" ".join(packages))
        return MISSING
    programs = dict.fromkeys(probe[0] for _, probe in pairs)
    print(" ".join(Path(p).name for p in programs if shutil.which(p)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
