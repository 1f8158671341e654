"""Run a reader in a process forked from this one: with limits, in an empty folder, with a record of its accesses."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from checkout import ROOT

from autodiff_gen.errors import AutodiffError

PROCESSOR, WALL = 30, 150  # seconds; several processes share a core, so that the clock runs on
MEMORY = 2 << 30  # bytes in addition to the loaded modules
RIGHT, REJECTED, FAILURE = "right", "rejected", "failure"
CANARY = "autodiff_canary"  # the module that hostile text imports, and the file that it writes
OUT = "out"  # the only folder that a reader may write to, in the folder of the file
MODEL = "model"  # a folder beside the file's folder, for files that are read together with it
READABLE = (
    str(ROOT),
    sys.prefix,
    sys.base_prefix,
    "/usr/lib",
    "/usr/share",
    "/usr/local/lib",
    "/proc",
    "/dev/null",
)
# Events of Python that start programs, or talk to others.
STARTS = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.startfile", "pty.spawn",
    "subprocess.Popen", "socket.connect", "socket.bind", "socket.getaddrinfo", "urllib.Request", "os.kill",
    "ctypes.dlopen", "webbrowser.open",
)  # fmt: skip
# Events of Python that change files -> which arguments are paths.
CHANGES = {
    "os.remove": (0,), "os.rmdir": (0,), "os.mkdir": (0,), "os.rename": (0, 1), "os.link": (0, 1), "os.symlink": (1,),
    "os.truncate": (0,), "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,), "shutil.rmtree": (0,),
    "shutil.move": (0, 1), "shutil.copyfile": (1,), "shutil.unpack_archive": (1,), "tempfile.mkstemp": (0,),
    "tempfile.mkdtemp": (0,),
}  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Outcome:
    """kind: RIGHT, REJECTED with the message as `text`, or FAILURE, with what happened; place: where, in few words."""

    kind: str
    text: str = ""
    place: str = ""
    seconds: float = 0.0


class Escaped(BaseException):
    """Raised in place of a forbidden access."""


class _Watch:
    """An audit hook that stops what readers must not do, and remembers the first."""

    def __init__(self, folder: Path, modules: Collection[str], programs: Collection[str]) -> None:
        self.found = ""
        self._out = f"{folder / OUT}{os.sep}"
        self._read = (f"{folder}{os.sep}", f"{folder.parent / MODEL}{os.sep}", *READABLE)
        self._modules = {name.partition(".")[0] for name in modules} | set(sys.stdlib_module_names)
        self._programs = frozenset(programs)

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        what = self._wrong(event, args)
        if what:
            self.found = self.found or what
            raise Escaped(what)

    def _wrong(self, event: str, args: tuple[Any, ...]) -> str:
        """The forbidden access of an event."""
        if event == "open":
            path, _, flags = args
            if not isinstance(path, str | bytes | os.PathLike):
                return ""
            if flags & WRITES:
                return "" if self._below(path, self._out) else f"writes {path!r}"
            return "" if self._below(path, *self._read) else f"reads {path!r}"
        if event in CHANGES:
            paths = [args[k] for k in CHANGES[event] if isinstance(args[k], str | bytes | os.PathLike)]
            outside = [p for p in paths if not self._below(p, self._out, self._out[:-1])]
            return f"{event} of {outside[0]!r}" if outside else ""
        if event in STARTS:
            return "" if str(args[0]) in self._programs else f"{event} {args[:2]!r}"
        if event == "import":
            return "" if args[0].partition(".")[0] in self._modules else f"imports {args[0]!r}"
        if event == "pickle.find_class":
            own = args[0].partition(".")[0] in ("torch", "collections")
            return "" if own else f"unpickles {args[0]}.{args[1]}"
        return ""

    def _below(self, path: Any, *folders: str) -> bool:
        return os.path.realpath(os.fsdecode(path)).startswith(folders)


def run(
    read: Callable[[], None],
    folder: Path,
    fault_of: Callable[[str], str],
    programs: Collection[str] = (),
    modules: Collection[str] = (),
) -> Outcome:
    """The outcome of `read` in another process, whose working folder is `folder`. fault_of: in what a message is
    wrong; programs: which it may start; modules: which it may import beside those that are loaded."""
    reading, writing = os.pipe()
    begin = time.monotonic()
    process = os.fork()
    if not process:
        os.close(reading)
        _child(read, folder, fault_of, programs, modules, writing)
    os.close(writing)
    data, ended = b"", False
    while not ended and (left := begin + WALL - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            part = os.read(reading, 65536)
            data, ended = data + part, not part
    os.close(reading)
    if not ended:
        os.kill(process, signal.SIGKILL)
    _, status, used = os.wait4(process, 0)
    seconds = used.ru_utime + used.ru_stime
    if not ended:
        return Outcome(FAILURE, f"did not end within {WALL} s", "time", seconds)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        kind = "time" if name == "SIGXCPU" else f"signal {name}"
        return Outcome(FAILURE, f"ended by {name} after {seconds:.1f} s of processor time", kind, seconds)
    if not data:
        return Outcome(FAILURE, "ended the process", "exit", seconds)
    return Outcome(**{**json.loads(data), "seconds": seconds})


def _child(
    read: Callable[[], None],
    folder: Path,
    fault_of: Callable[[str], str],
    programs: Collection[str],
    modules: Collection[str],
    writing: int,
) -> NoReturn:
    try:
        os.chdir(folder)
        (folder / OUT).mkdir(exist_ok=True)
        nothing = os.open(os.devnull, os.O_RDWR)
        for handle in range(3):
            os.dup2(nothing, handle)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        for limit, most in (
            (resource.RLIMIT_AS, pages * resource.getpagesize() + MEMORY),
            (resource.RLIMIT_CPU, PROCESSOR),
            (resource.RLIMIT_FSIZE, 1 << 28),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(limit, (most, most + (limit == resource.RLIMIT_CPU)))
        watch = _Watch(folder, {*sys.modules, *modules}, programs)
        sys.addaudithook(watch)
        outcome = _outcome(read, fault_of)
        if watch.found:
            outcome = Outcome(FAILURE, watch.found, watch.found.partition(" ")[0])
        os.write(writing, json.dumps(asdict(outcome)).encode())
    finally:
        os._exit(0)


def _outcome(read: Callable[[], None], fault_of: Callable[[str], str]) -> Outcome:
    try:
        read()
    except AutodiffError as error:
        text = str(error)
        fault = fault_of(text)
        return Outcome(FAILURE, f"{fault}: {text}", f"message: {fault}") if fault else Outcome(REJECTED, text)
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if f.filename.startswith(str(ROOT / "autodiff_gen"))] or frames
        place = f"{type(error).__name__} {os.path.relpath(own[-1].filename, ROOT)}:{own[-1].lineno}"
        shown = "".join(traceback.format_exception(error, limit=-12))
        return Outcome(FAILURE, shown[-3000:], place)
    return Outcome(RIGHT)
