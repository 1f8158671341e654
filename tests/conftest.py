"""For all tests: a missing tool is a failure, never a skip; random numbers come from a seed that is printed."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import os
import resource
import shutil
import signal
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Browser
from checkout import ROOT
from hypothesis import given, settings, strategies

from autodiff_gen.host import compiler

SEED = int(os.environ.setdefault("AUTODIFF_SEED", "1"))  # workers inherit it
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of Python processes would compile the package anew
# Processes would start threads for which there is no core, and wait for each other's in loops.
for library in ("OMP", "OPENBLAS"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
if "AUTODIFF_TEST_OBJECTS" not in os.environ:
    os.environ["AUTODIFF_TEST_OBJECTS"] = tempfile.mkdtemp(prefix="autodiff objects ")
    atexit.register(shutil.rmtree, os.environ["AUTODIFF_TEST_OBJECTS"])
# A shell starts jobs in the background with Ctrl-C ignored, which programs inherit; tests of Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Most tests compute little with their programs; all levels give the same bits, as test_training.py holds.
compiler.REF_LEVEL = "-O0"

TOOLS = {
    "cc": ("gcc", "clang"),
    "qemu": ("arm-none-eabi-gcc", "qemu-system-arm"),
    "pio": ("strace",),
}
MODULES = {"torch": "torch", "pio": "platformio", "browser": "PySide6"}

COLLECTED_AT = pytest.StashKey[int]()  # the peak of memory at the last search for garbage

LONG = {"slow", "pio", "browser"}  # markers of tests that may take more than ten seconds

# Graphs are garbage with cycles, as nodes and values refer to each other: to find it takes a tenth of the tests' own
# time, so that it is not cleared until this process has grown by its part of half of the memory, in KiB.
gc.disable()


def memory() -> int:
    """The memory of the machine, or of the container, if that has less, in bytes."""
    limits = [Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory/memory.limit_in_bytes")]
    found = [text for path in limits if path.is_file() and (text := path.read_text().strip()).isdigit()]
    return min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *map(int, found)])


WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0"))
GROWTH = min(memory() // 2048 // max(WORKERS, 1), 6 << 20)

settings.register_profile("repository", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("repository")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden anew; then read the diff"
    )
    parser.addoption("--graphs", type=int, default=50, help="random graphs that test_compilers.py compares")
    parser.addoption("--fleets", type=int, default=20, help="fleets with accidents of test_robustness.py")
    parser.addoption(
        "--update-sizes", action="store_true", help="write the memory that programs use into README files"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first in the part of the items that each worker of xdist begins with, so that none of them is left for
    the end. Workers without work take the last items of others."""
    if not WORKERS:
        return
    groups: tuple[list[pytest.Item], list[pytest.Item]] = ([], [])
    for item in items:
        groups[LONG.isdisjoint(mark.name for mark in item.iter_markers())].append(item)
    long, short = groups
    parts: list[list[pytest.Item]] = []
    for left in range(WORKERS, 0, -1):  # the sizes of --dist worksteal
        size, count = (len(long) + len(short)) // left, len(long) // left
        parts.append([*long[:count], *short[: size - count]])
        del long[:count], short[: size - count]
    items[:] = [item for part in parts for item in part]


@pytest.hookimpl(trylast=True)
def pytest_sessionstart() -> None:
    given(strategies.none())(lambda _: None)()  # before its first example, Hypothesis searches all objects


def peak() -> int:
    """The most memory that this process has had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    session.stash[COLLECTED_AT] = peak()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    stash = item.session.stash
    if peak() > stash[COLLECTED_AT] + GROWTH:
        gc.unfreeze()
        gc.collect()
        stash[COLLECTED_AT] = peak()
    gc.freeze()  # what PyTorch searches for garbage itself, the objects of one test, are few then


def pytest_sessionfinish() -> None:
    gc.freeze()  # pytest collects garbage at its end, several times


def pytest_report_header() -> str:
    return f"seed: AUTODIFF_SEED={SEED}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers():
        for tool in TOOLS.get(marker.name, ()):
            if shutil.which(tool) is None:
                pytest.fail(f"{tool} is not installed; ./scons test installs it", pytrace=False)
        module = MODULES.get(marker.name)
        if module is not None and importlib.util.find_spec(module) is None:
            pytest.fail(f"{module} is not installed; ./scons test installs it", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} skipped or expected to fail; tests here pass or fail"
    return report


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A seed of the test's name, wherever its file is; another AUTODIFF_SEED gives another."""
    value = zlib.crc32(f"{SEED} {request.node.name}".encode())
    print(f"seed {value} (AUTODIFF_SEED={SEED})")
    return value


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """Random numbers from the test's seed."""
    return np.random.default_rng(seed)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    browser = Browser()
    yield browser
    browser.close()
