"""One cache of object files for all builds of a test session by SCons and PlatformIO, whatever the folder of the tree
or of the build.

PlatformIO's own `build_cache_dir` cannot serve: builds would share the file of signatures too, and lose each other's.

`variables` are those of such a build: SCons runs this file as the user's own site_init.py. Steps are printed as if they
were taken. All else than objects is made anew, so that a missing dependency shows.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

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
    from SCons.Util import hash_collect, hash_signature

    class Objects(SCons.CacheDir.CacheDir):  # type: ignore[misc]
        """Keyed by the command without paths, repeated words and macros that the source does not read, and by the
        content of what the object depends on."""

        def cachepath(self, node):  # type: ignore[no-untyped-def]
            command = bytes(node.get_executor().get_contents())
            text = b"".join(source.get_contents() for source in node.sources)
            for file in (node, *node.sources):
                command = command.replace(str(file).encode(), b"")
            words = b" ".join(word for word in dict.fromkeys(command.split()) if _matters(word, text))
            contents = {n.get_csig() for n in node.children()}
            key = hash_collect([hash_signature(words), *sorted(contents)])
            return self.path, os.path.join(self.path, key)

        def retrieve(self, node):  # type: ignore[no-untyped-def]
            return node.get_internal_path().endswith(".o") and super().retrieve(node)

        def push(self, node):  # type: ignore[no-untyped-def]
            return node.get_internal_path().endswith(".o") and super().push(node)

    SCons.CacheDir.CacheDir = Objects
    # A property, because the default environment, which PlatformIO clones, would set the attribute to None.
    SCons.Environment.Base._CacheDir_path = property(lambda _: str(FOLDER / "scons"), lambda *_: None)


def _matters(word: bytes, text: bytes) -> bool:
    """Whether a word of the command changes the object, given the content of headers. No header reads these macros."""
    macro = word.removeprefix(b"-D").split(b"=")[0]
    return not word.startswith(b"-iquote") and (macro not in (b"AG_BOARD", b"PLATFORMIO") or macro in text)


if __name__ != "scons_object_cache":
    install()
