"""Third-party sources that a kernel table refers to: locate and fetch them.

They are at the path in an environment variable, otherwise in the folder to which `autodiff-gen fetch` unpacks the
pinned package: a wheel, which is a zip file, or a source archive. Neither is installed. Stdlib only.
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
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import KernelError
from ..targets import installation

_SECONDS = 300
_PIN = re.compile(r"^([\w.-]+==[\w.]+) \\\n +--hash=sha256:([0-9a-f]{64})$", re.MULTILINE)
KEYS: dict[str, type] = {
    "name": str,
    "variable": str,
    "include": list,
    "sources": list,
    "cflags": list,
    "version": list,
    "versions": list,
    "requirements": str,
    "root": str,
    "optional": list,
}
REQUIRED = tuple(key for key in KEYS if key != "optional")


@dataclass(frozen=True)
class External:
    """The section [external] of a table. variable: the environment variable; sources: patterns of files; optional:
    patterns of files that only some versions have; version: a file, and a pattern whose first group is the version;
    versions: the supported versions; requirements: the file with the pinned package; root: the folder of the sources in
    the package."""

    backend: str
    name: str
    variable: str
    include: tuple[str, ...]
    sources: tuple[str, ...]
    cflags: tuple[str, ...]
    version: tuple[str, ...]
    versions: tuple[str, ...]
    requirements: str
    root: str
    optional: tuple[str, ...] = ()

    @classmethod
    def of(cls, backend: str, table: Mapping[str, Any]) -> External:
        """Create it from a table whose keys and types were checked."""
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
        return cls(backend, **values)

    @cached_property
    def pin(self) -> tuple[str, str]:
        """The package as pip calls it, name==version, and its SHA-256."""
        match = _PIN.search(self._requirements.read_text(encoding="utf-8"))
        assert match is not None, self.requirements
        return match[1], match[2]

    @property
    def _requirements(self) -> Path:
        return installation.requirements() / self.requirements

    @property
    def _fetched(self) -> Path:
        return fetched() / self.pin[0].replace("==", "-")

    def files(self, folder: Path) -> tuple[Path, ...]:
        """The source files in a folder."""
        patterns = (*self.sources, *self.optional)
        return tuple(path for name in patterns for path in sorted(folder.glob(name)))

    def folder(self) -> Path:
        """The folder of the sources. Raises KernelError if it is missing, incomplete, or of an unsupported version."""
        given = os.environ.get(self.variable, "")
        folder = Path(os.path.expanduser(given)).resolve() if given else self._fetched
        if not given and not folder.is_dir():
            raise KernelError(
                f"backend {self.backend!r} needs {self.name}: set {self.variable} to the path of its sources, "
                f"or run autodiff-gen fetch {self.backend}"
            )
        where = f"{self.variable}={given}" if given else str(folder)
        needed = (self.version[0], *self.sources)
        missing = next((n for n in needed if not next(folder.glob(n), folder / n).is_file()), None)
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
        requirement, checksum = self.pin
        if archive is None:
            data = self._download()
        else:
            try:
                data = archive.read_bytes()
            except OSError as error:
                raise KernelError(f"cannot get {archive}: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != checksum:
            raise KernelError(
                f"{archive or requirement}: its SHA-256 is not {checksum}; nothing was unpacked"
            )
        target = self._fetched
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=".fetch-"))
        try:
            self._unpack(data, temporary)
            shutil.rmtree(target, ignore_errors=True)
            temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return target

    def _download(self) -> bytes:
        """The package, downloaded by pip. For a source archive pip runs the package's setup.py, after it has checked
        the SHA-256."""
        requirement = self.pin[0]
        with tempfile.TemporaryDirectory() as folder:
            options = [
                "--disable-pip-version-check",
                "--no-input",
                "--quiet",
                "--no-deps",
                "--require-hashes",
            ]
            words = ["download", *options, "-r", str(self._requirements), "-d", folder]
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "pip", *words], capture_output=True, text=True, timeout=_SECONDS
                )
            except subprocess.TimeoutExpired:
                raise KernelError(f"cannot get {requirement}: pip took {_SECONDS} s") from None
            archives = list(Path(folder).iterdir())
            if done.returncode or len(archives) != 1:
                errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
                why = (
                    errors[-1].removeprefix("ERROR: ") if errors else f"pip's exit code is {done.returncode}"
                )
                raise KernelError(
                    f"cannot get {requirement} by pip: {why}; give a file with --file, or set {self.variable}"
                )
            return archives[0].read_bytes()

    def _unpack(self, archive: bytes, folder: Path) -> None:
        """Write C sources of the archive's `root`, of the folders that the table names, and its licence."""
        wanted = {PurePosixPath(name).parts[0] for name in (*self.include, *self.sources)}
        for name, content in _members(archive):
            path = PurePosixPath(name)
            if not path.is_relative_to(self.root) or ".." in path.parts:
                continue
            path = path.relative_to(self.root)
            if path.name == "LICENSE" or (path.suffix in (".c", ".h") and path.parts[0] in wanted):
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def _members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files of a zip or tar file."""
    if zipfile.is_zipfile(io.BytesIO(archive)):
        with zipfile.ZipFile(io.BytesIO(archive)) as wheel:
            for name in wheel.namelist():
                yield name, wheel.read(name)
        return
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, content.read()


def fetched() -> Path:
    """The folder of fetched packages: in the virtual environment that this Python belongs to, otherwise in the user's
    cache folder."""
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "packages"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "autodiff_gen" / "packages"
