"""Third-party sources that a kernel table refers to: locate and fetch them.

They are at the path in an environment variable, otherwise in the folder to which `autodiff-gen fetch` unpacks the
pinned package. Stdlib only.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import KernelError

_SECONDS = 300
KEYS: dict[str, type] = {
    "name": str,
    "variable": str,
    "include": list,
    "sources": list,
    "cflags": list,
    "version": list,
    "versions": list,
    "package": str,
    "requirement": str,
    "sha256": str,
}


@dataclass(frozen=True)
class External:
    """The section [external] of a table. `version`: a file, and a pattern whose first group is the version."""

    backend: str
    name: str
    variable: str
    include: tuple[str, ...]
    sources: tuple[str, ...]
    cflags: tuple[str, ...]
    version: tuple[str, ...]
    versions: tuple[str, ...]
    package: str
    requirement: str
    sha256: str

    @classmethod
    def of(cls, backend: str, table: Mapping[str, Any]) -> External:
        """Create it from a table whose keys and types were checked."""
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
        return cls(backend, **values)

    def folder(self) -> Path:
        """The folder of the sources, of a supported version. Raises KernelError."""
        given = os.environ.get(self.variable, "")
        folder = Path(given).expanduser().resolve() if given else fetched() / self.package
        if not given and not folder.is_dir():
            raise KernelError(
                f"backend {self.backend!r} needs {self.name}: set {self.variable} to the path of its sources, "
                f"or run autodiff-gen fetch {self.backend}"
            )
        where = f"{self.variable}={given}" if given else str(folder)
        missing = next((n for n in (self.version[0], *self.sources) if not (folder / n).is_file()), None)
        if missing is not None:
            raise KernelError(f"{where} is not {self.name}: it has no {missing}")
        match = re.search(self.version[1], (folder / self.version[0]).read_text("utf-8", errors="replace"))
        if match is None or match[1] not in self.versions:
            version = f"has version {match[1]}" if match else "has no version"
            raise KernelError(
                f"{where}: {self.version[0]} {version}; supported of {self.name}: {', '.join(self.versions)}"
            )
        return folder

    def fetch(self, archive: Path | None = None) -> Path:
        """Check the SHA-256 of the pinned package and unpack its C sources and licence. The package is `archive`, or
        downloaded by pip from the user's package index. Raises KernelError."""
        if archive is None:
            data = self._download()
        else:
            try:
                data = archive.read_bytes()
            except OSError as error:
                raise KernelError(f"cannot get {archive}: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise KernelError(
                f"{archive or self.requirement}: its SHA-256 is not {self.sha256}; nothing was unpacked"
            )
        target = fetched() / self.package
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=".fetch-"))
        try:
            _unpack(data, temporary)
            shutil.rmtree(target, ignore_errors=True)
            (temporary / self.package).rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return target

    def _download(self) -> bytes:
        """The package's source archive. To read its metadata, pip runs the package's setup.py, after it has checked the
        SHA-256."""
        distribution = self.requirement.partition("==")[0]
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder, "requirements.txt")
            wanted.write_text(f"{self.requirement} --hash=sha256:{self.sha256}\n")
            options = [
                "--disable-pip-version-check",
                "--no-input",
                "--quiet",
                "--no-deps",
                "--require-hashes",
            ]
            words = ["download", *options, "--no-binary", distribution, "-r", str(wanted), "-d", folder]
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "pip", *words], capture_output=True, text=True, timeout=_SECONDS
                )
            except subprocess.TimeoutExpired:
                raise KernelError(f"cannot get {self.requirement}: pip took {_SECONDS} s") from None
            archives = [p for p in Path(folder).iterdir() if p != wanted]
            if done.returncode or len(archives) != 1:
                errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
                why = (
                    errors[-1].removeprefix("ERROR: ") if errors else f"pip's exit code is {done.returncode}"
                )
                raise KernelError(
                    f"cannot get {self.requirement} by pip: {why}; give a file with --file, or set {self.variable}"
                )
            return archives[0].read_bytes()


def _unpack(archive: bytes, folder: Path) -> None:
    """Extract the C sources and the licence of a tar file. (Debian 12's Python 3.11.2 lacks extractall(filter=...).)"""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            target = (folder / member.name).resolve()
            content = tar.extractfile(member) if member.isfile() else None
            wanted = re.search(r"\.[ch]$|/LICENSE$", member.name) and target.is_relative_to(folder.resolve())
            if content is not None and wanted:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())


def fetched() -> Path:
    """The folder of fetched packages, in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "autodiff_gen" / "packages"
