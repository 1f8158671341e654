"""Write files into a user's folder. A record in the folder has the digest of each, so that a later command replaces or
deletes only files that an earlier command wrote and nobody has changed since."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import posixpath
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from .errors import ToolError, listed, quoted
from .reading.json_text import parse
from .reading.limits import TEXT
from .reading.regular import open_regular, read_bytes

RECORD = ".autodiff_gen.json"
_DIGEST = re.compile(r"([0-9a-f]{16})?")  # empty: of a file that the user has written


def write_file(path: Path, content: str | bytes, force: bool = False) -> None:
    """Write one file, as `write_files` does."""
    write_files(path.parent, {path.name: content}, force)


def write_files(
    folder: Path,
    files: Mapping[str, str | bytes],
    force: bool = False,
    record: str = RECORD,
    keep: Collection[str] = (),
    own: Collection[str] = (),
    heading: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write all files, by their paths below the folder, or none; returns the paths. Raises ToolError for a file that
    was changed since it was written, and for one that the record does not have, unless `force` replaces it.

    record: the name of the record. With a `heading`, which begins the record, the record lists only these files: files
    that it listed before are deleted. keep: files that stay as they are, and are recorded as they were; own: earlier
    ones that are the user's to change, and stay if they were changed.
    """
    is_all = heading is not None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            before = recorded(folder, record)
            old = sorted(before.keys() - files.keys()) if is_all else []
            old = [f for f in old if f not in own or _is_unchanged(folder, f, before[f])]
            written = {f: _bytes(content) for f, content in files.items() if f not in keep}
            _check(folder, written, old, before, force)
            digests = {f: _digest(content) for f, content in written.items()}
            if is_all:
                digests |= {f: before.get(f, "") for f in files if f in keep}
            else:
                digests = {**before, **digests}
            text = json.dumps({**(heading or {}), "files": dict(sorted(digests.items()))}, indent=1) + "\n"
            _replace(folder, {**written, record: text.encode()})
            for name in old:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    (folder / name).unlink()
                _remove_empty((folder / name).parent, folder)
    except OSError as error:
        raise ToolError(f"cannot write to {error.filename or folder}: {error.strerror}") from None
    return [folder / name for name in files]


def recorded(folder: Path, record: str = RECORD) -> dict[str, str]:
    """The digests of the files that commands have written into the folder, by their paths below it. Raises ToolError
    for a record that no command wrote."""
    path = folder / record
    if not os.path.lexists(path):
        return {}
    data = parse(read_bytes(path, ToolError, TEXT), str(path), ToolError)
    files = data.get("files") if isinstance(data, dict) else None
    if not isinstance(files, dict):
        raise ToolError(f"{path}: has no files; remove it, or choose another folder")
    for name, digest in files.items():
        if not _is_below(name) or not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise ToolError(
                f"{path}: {quoted(name)} is no file below its folder, or has no digest; remove the record, or choose "
                "another folder"
            )
    return files


def is_changed(folder: Path, name: str, digest: str) -> bool:
    """Whether there is a file that has not this digest."""
    return os.path.lexists(folder / name) and not _is_unchanged(folder, name, digest)


def _is_below(name: str) -> bool:
    """Whether a path of a record is relative and normalised, without names that lead out of the folder."""
    return (
        name.isprintable()
        and name == posixpath.normpath(name)
        and name.split("/")[0] not in ("", ".", "..")
        and "\\" not in name
        and not Path(name).is_absolute()
    )


def _check(
    folder: Path, files: Mapping[str, bytes], old: Collection[str], before: Mapping[str, str], force: bool
) -> None:
    """Raise ToolError unless these files may be written, and the old ones deleted."""
    root = os.path.realpath(folder)
    for name in (*files, *old):
        parent = (folder / name).parent
        if not Path(os.path.realpath(parent)).is_relative_to(root):
            raise ToolError(f"{parent} is a link to a folder outside {folder}; remove it")
        mode = _mode(folder / name)
        if mode is not None and not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            what = "a folder" if stat.S_ISDIR(mode) else "no regular file"
            raise ToolError(f"{folder / name} is {what}; remove it, or choose another --out")
    if force:
        return
    changed = [f for f in files if is_changed(folder, f, before.get(f, ""))]
    changed = [f for f in changed if not _is_equal(folder / f, files[f])]
    changed += [f for f in old if is_changed(folder, f, before[f])]
    if changed:
        names = listed((str(folder / f) for f in changed), 160)
        raise ToolError(
            f"{names}: not written by autodiff-gen, or changed since; move it, choose another --out, or "
            "replace it by --force"
        )


def _is_unchanged(folder: Path, name: str, digest: str) -> bool:
    """Whether a regular file has this digest."""
    mode = _mode(folder / name)
    if not digest or mode is None or not stat.S_ISREG(mode):
        return False
    with open_regular(folder / name, ToolError) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[: len(digest)] == digest


def _is_equal(path: Path, content: bytes) -> bool:
    """Whether a regular file has this content: then it may be another's, as nothing is lost."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_size != len(content):
        return False
    return read_bytes(path, ToolError) == content


def _mode(path: Path) -> int | None:
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _replace(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write temporary files, then rename them, the last one last."""
    temporaries = {}
    try:
        for name, content in files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
            temporaries[target] = temporary
            temporary.write_bytes(content)
        for target, temporary in temporaries.items():
            os.replace(temporary, target)
    finally:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove the folder, and those below `top` that it is in, as long as they are empty."""
    while folder != top and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """No other command changes the record meanwhile."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
