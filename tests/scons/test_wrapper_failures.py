"""`./scons`, the shell script, after a set-up that failed or was interrupted, and beside another."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from wrapper_checkout import SETUP, Checkout


@pytest.mark.parametrize("failing", ["runtime.txt", "docs.txt", "test.txt", "torch.txt"])
def test_after_a_failed_set_up(checkout: Checkout, failing: str) -> None:
    checkout.env["STUB_FAIL"] = failing
    done = checkout.attempt("test")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: pip could not install requirements/{failing}")
    assert not any(line.startswith("SCons") for line in checkout.lines())
    del checkout.env["STUB_FAIL"]
    # A half-written environment is not trusted: it is made anew. The environment of Flower may be whole already.
    fleet = ["venv", "pip fleet.txt"] if failing in ("runtime.txt", "docs.txt") else []
    assert checkout.run("test")[:-1] == [
        "venv",
        "probe",
        "pip runtime.txt",
        "pip docs.txt",
        *fleet,
        "pip test.txt",
        "fetch cmsis",
        "pip torch.txt",
    ]
    assert len(checkout.run("test")) == 1


def test_after_a_failed_fetch(checkout: Checkout) -> None:
    """The environment stays: a fetch leaves nothing half-written."""
    checkout.env["STUB_FAIL"] = "fetch"
    done = checkout.attempt("test")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: cannot fetch requirements/cmsis-nn.txt; see above"
    del checkout.env["STUB_FAIL"]
    assert checkout.run("test")[:-1] == ["fetch cmsis", "pip torch.txt"]
    assert len(checkout.run("test")) == 1
    with (checkout.root / "requirements/cmsis-nn.txt").open("a") as file:
        file.write("# edited\n")
    assert checkout.run("test")[:-1] == ["fetch cmsis"]


def test_after_an_interrupted_set_up(checkout: Checkout) -> None:
    checkout.env["STUB_SLEEP"] = "30"
    process = subprocess.Popen(
        checkout.command(), env=checkout.env, stdin=subprocess.DEVNULL, start_new_session=True
    )
    wait_for(lambda: "pip runtime.txt" in checkout.lines())
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    del checkout.env["STUB_SLEEP"]
    assert checkout.run()[:-1] == SETUP
    assert len(checkout.run()) == 1


def wait_for(condition, seconds: float = 30) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_twice_at_once(checkout: Checkout) -> None:
    checkout.env["STUB_SLEEP"] = "1"
    processes = [
        subprocess.Popen(
            checkout.command(f"n{i}"),
            env=checkout.env,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(3)
    ]
    errors = [p.communicate(timeout=60)[1] for p in processes]
    assert [p.returncode for p in processes] == [0, 0, 0], errors
    lines = checkout.lines()
    assert lines[:3] == SETUP
    assert len(lines) == 6
    assert sum("waiting for another set-up" in e for e in errors) == 2


def test_a_peer_that_cannot_be_installed_is_left_out(checkout: Checkout) -> None:
    checkout.env["STUB_FAIL"] = "bench.txt"
    done = checkout.attempt("bench")
    assert done.returncode == 0
    assert "error: pip could not install requirements/bench.txt; see above" in done.stderr
    assert "scons: the benchmark continues without it" in done.stderr
    assert checkout.lines()[-1].startswith("SCons")
    del checkout.env["STUB_FAIL"]
    assert checkout.run("bench")[:-1] == ["pip bench.txt"]
