"""One cache of object files for all builds of a test session by SCons and PlatformIO, whatever the folder of the tree
or of the build.

PlatformIO's own `build_cache_dir` cannot serve: builds would share the file of signatures too, and lose each other's.

`variables` belong to such a build: SCons runs this file as the user's own site_init.py. Steps are printed as if they
were taken. All else than objects is made anew, so that a missing dependency shows. Objects have no debug information,
which nothing reads: that takes a quarter of a compiler's time, and their code is the same.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

_PASTED = re.compile(rb"(\w*)\s*##\s*(\w*)")  # parts of the names of macros

FOLDER = Path(os.environ["AUTODIFF_TEST_OBJECTS"])  # made by conftest.py, one for all workers


def variables() -> dict[str, str]:
    """Environment variables of a build that uses the cache."""
    target = FOLDER / ".scons" / "site_scons" / "site_init.py"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(f".{os.getpid()}")
        shutil.copyfile(__file__, part)
        part.replace(target)
    return {"HOME": str(FOLDER), "SCONSFLAGS": "--cache-show"}


def environment() -> dict[str, str]:
    """The caller's environment with the cache, without what would reach SCons by accident."""
    return {
        **{k: v for k, v in os.environ.items() if k not in ("AUTODIFF_PYTHON", "PYTHONPATH")},
        **variables(),
    }


def install() -> None:
    """In SCons: use the cache in every environment."""
    import SCons.CacheDir
    import SCons.Environment
    import SCons.Platform.posix
    from SCons.Util import hash_collect, hash_signature

    class Objects(SCons.CacheDir.CacheDir):  # type: ignore[misc]
        """Keyed by the command without the paths of files, repeated words and macros that nobody reads, and by the
        content of the object's dependencies."""

        def cachepath(self, node):  # type: ignore[no-untyped-def]
            command, files = bytes(node.get_executor().get_contents()), node.children()
            paths = {str(node), *map(str, files), *(file.dir.get_abspath() for file in files)}
            for path in sorted(paths, key=len, reverse=True):
                command = command.replace(path.encode(), b"")
            text = b"".join(
                file.get_contents() for file in files if file.get_suffix()
            )  # without the compiler
            words = b" ".join(word for word in dict.fromkeys(command.split()) if _matters(word, text))
            key = hash_collect([hash_signature(words), *sorted({file.get_csig() for file in files})])
            return self.path, os.path.join(self.path, key)

        def retrieve(self, node):  # type: ignore[no-untyped-def]
            return node.get_internal_path().endswith(".o") and super().retrieve(node)

        def push(self, node):  # type: ignore[no-untyped-def]
            return node.get_internal_path().endswith(".o") and super().push(node)

    start = SCons.Platform.posix.exec_subprocess

    def without_debug_information(words, env):  # type: ignore[no-untyped-def]
        if words[:2] == ["sh", "-c"]:  # PlatformIO's
            words = [*words[:2], words[2] + " -g0" if " -c " in words[2] else words[2]]
        elif "-c" in words:
            words = [*words, "-g0"]
        return start(words, env)

    SCons.Platform.posix.exec_subprocess = without_debug_information
    SCons.CacheDir.CacheDir = Objects
    # A property, because the default environment, which PlatformIO clones, would set the attribute to None.
    SCons.Environment.Base._CacheDir_path = property(lambda _: str(FOLDER / "scons"), lambda *_: None)


def _matters(word: bytes, text: bytes) -> bool:
    """Whether a word of the command changes the object that is made of `text`, in which only the system's headers are
    missing: those only read macros of the language."""
    macro = word.removeprefix(b"-D").split(b"=")[0]
    if word.startswith(b"-D"):
        pasted = any(
            (left and macro.startswith(left)) or (right and macro.endswith(right))
            for left, right in _PASTED.findall(text)
        )
        return pasted or macro in text or macro.startswith(b"_") or macro == b"NDEBUG"
    return not word.startswith(b"-iquote")


if __name__ != "scons_object_cache":
    install()
