"""Compile sources to a shared library with the host's C compiler; objects are cached by the hash of their inputs.

The cache is `$AUTODIFF_CACHE`, by default a folder of this user in the temporary folder. Every file is written under a
temporary name and renamed, so that concurrent processes can build the same library.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolError
from ..kernels.libraries import check_libraries
from ..kernels.registry import Backends
from ..kernels.table import Kernel, KernelSource
from ..targets import installation

CFLAGS = ("-std=c99", "-fPIC", "-fno-strict-aliasing")
CANDIDATES = ("cc", "gcc", "clang")
REF_LEVEL, TUNED_LEVEL = "-O1", "-O2"  # levels of generated C: all kernels are `ref`, or not


def find_compiler(cc: str | None = None) -> tuple[str, ...]:
    """The compiler as the start of a command line: `cc`, otherwise $CC, otherwise the first of cc, gcc and clang on the
    PATH. Raises ToolError, with the command that installs one, if there is none.
    """
    requested = cc or os.environ.get("CC")
    if requested:
        words = tuple(shlex.split(requested))
        if not words or shutil.which(words[0]) is None:
            origin = "cc=" if cc else "$CC"
            raise ToolError(
                f"the C compiler {requested!r} of {origin} is not on the PATH; install it, or unset CC: "
                "apt-get install gcc"
            )
        return words
    for name in CANDIDATES:
        if shutil.which(name) is not None:
            return (name,)
    raise ToolError(f"no C compiler on the PATH ({', '.join(CANDIDATES)}); install one: apt-get install gcc")


@dataclass(frozen=True)
class Compiler:
    """A host compiler. command: the start of its command line; opt: the optimisation level of all C. Without opt,
    kernels are compiled with -O2, and generated C too unless all kernels are `ref`: then it has -O1, with which it is
    as fast within 5 %, and compiles in two thirds of the time.
    """

    command: tuple[str, ...]
    opt: str = ""

    @property
    def identity(self) -> str:
        """A text that differs between compilers, their versions and options; the compiler is not run for it."""
        path = os.path.realpath(shutil.which(self.command[0]) or self.command[0])
        stat = os.stat(path)
        return f"{path} {stat.st_size} {stat.st_mtime_ns} {self.command[1:]}"

    def library(self, files: Mapping[str, str], backends: Backends, called: Iterable[Kernel]) -> ctypes.CDLL:
        """Compile the .c files among `files` (name -> text) and the kernels `called`, with their callees, and load the
        library.

        Generated C is built without contraction into FMA when every backend is `ref`, otherwise with it. Raises
        ToolError.
        """
        contract = "-ffp-contract=off" if backends.only_ref else "-ffp-contract=fast"
        level = self.opt or (REF_LEVEL if backends.only_ref else TUNED_LEVEL)
        include = (*backends.include_dirs(), installation.runtime())
        headers = [p for folder in include for p in sorted(folder.glob("*.h"))]
        headers += sorted((backends.root / "tiles").glob("*.[ch]"))
        used = fingerprint(self.identity, *map(_content, headers))
        sources = backends.sources(called)
        kernels = [
            (source, fingerprint(used, repr(self._flags(source)), _content(source.path)))
            for source in sources
        ]
        texts = (f"{name}\0{text}" for name, text in files.items())
        library = (
            cache_folder() / f"{fingerprint(used, level, contract, *texts, *(key for _, key in kernels))}.so"
        )
        if not library.exists():
            check_libraries(backends, self.command)
            with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="build-") as name:
                folder = Path(name)
                joined = _with_parameters(files)
                for file, text in joined.items():
                    (folder / file).write_text(text, encoding="utf-8")
                flags = [f"-I{p}" for p in include]
                objects = [self._kernel(source, key, flags, folder) for source, key in kernels]
                generated = [str(folder / f) for f in joined if f.endswith(".c")]
                words = ["-shared", level, contract, f"-I{folder}", *flags, *generated, *map(str, objects)]
                built = folder / "library.so"
                self._run(*words, *backends.ldflags, "-lm", "-o", str(built))
                os.replace(built, library)
        return ctypes.CDLL(str(library))

    def _flags(self, source: KernelSource) -> list[str]:
        """The flags of a kernel, with the optimisation level of its backend if that has one."""
        levels = [] if any(flag.startswith("-O") for flag in source.cflags) else [self.opt or "-O2"]
        return [*levels, *source.cflags]

    def _kernel(self, source: KernelSource, key: str, include: Sequence[str], folder: Path) -> Path:
        """The object of a hand-written kernel, from the cache if it was compiled before."""
        cached = cache_folder() / f"{key}.o"
        if not cached.exists():
            target = folder / cached.name
            self._run("-c", *self._flags(source), *include, str(source.path), "-o", str(target))
            os.replace(target, cached)
        return cached

    def _run(self, *args: str) -> None:
        command = [*self.command, *CFLAGS, *args]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(
                f"{shlex.join(command)} failed with exit code {done.returncode}: {first_error(done.stderr)}"
            )


def first_error(stderr: str) -> str:
    """The first line of a compiler's or linker's output that is an error, without the linker's path. The last line of
    a failed linker only says that it failed."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("collect2:")] or lines
    words = ("error:", "undefined reference", "overflowed")
    line = next((line for line in lines if any(word in line for word in words)), lines[0] if lines else "")
    return re.sub(r"^\S+/(ld: )", r"\1", line)


def _with_parameters(files: Mapping[str, str]) -> dict[str, str]:
    """The files with each NAME_params.c at the end of NAME.c: one call of the compiler instead of two."""
    joined = dict(files)
    for file in files:
        stem = file.removesuffix("_params.c")
        if stem != file and f"{stem}.c" in files:
            joined[f"{stem}.c"] += joined.pop(file)
    return joined


def cache_folder() -> Path:
    """The folder of compiled objects; created if absent. Raises ToolError if another user owns it."""
    chosen = os.environ.get("AUTODIFF_CACHE")
    if chosen:
        folder = Path(chosen).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    owner = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"autodiff-gen-{owner}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and (folder.is_symlink() or folder.stat().st_uid != owner):
        raise ToolError(f"{folder} belongs to another user; set AUTODIFF_CACHE to a folder of your own")
    return folder


def _content(path: Path) -> str:
    """A text that differs between contents of a file, which is read again after a change."""
    status = path.stat()
    return _hash_of(path, status.st_size, status.st_mtime_ns, status.st_ino)


@functools.lru_cache(maxsize=1024)
def _hash_of(path: Path, size: int, changed: int, inode: int) -> str:
    return fingerprint(path.read_text(encoding="utf-8"))


def fingerprint(*parts: str) -> str:
    """A hash of texts, for the names of files that depend on them."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]
