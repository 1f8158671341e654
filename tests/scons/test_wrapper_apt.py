"""Packages that `./scons`, the shell script, installs by apt-get, and its message where it cannot."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from wrapper_checkout import SETUP, Checkout, scons_words, write_program


def fake_apt(checkout: Checkout, *, uid: int, sudo: str) -> None:
    """apt-get that logs, `id` that says who we are, and a sudo that may fail."""
    folder = checkout.log.parent / "bin"
    apt = '#!/bin/sh\necho "apt $DEBIAN_FRONTEND $*" >>"$STUB_LOG"\ncase $* in *install*) : >"$STUB_LOG.apt" ;; esac\n'
    write_program(folder / "apt-get", apt)
    policy = (
        "#!/bin/sh\ncase $* in *snap-only*) c='(none)' ;; *) c=1.0 ;; esac\necho \"$2:\n  Candidate: $c\"\n"
    )
    write_program(folder / "apt-cache", policy)
    write_program(folder / "id", f"#!/bin/sh\necho {uid}\n")
    write_program(folder / "sudo", f"#!/bin/sh\n{sudo}\n")
    checkout.env["STUB_MISSING"] = "gcc-arm-none-eabi qemu-system-arm"


ALLOWED = 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"'


@pytest.mark.parametrize(("uid", "sudo"), [(0, "exit 1"), (1000, ALLOWED)])
def test_missing_toolchain_is_installed_without_questions(checkout: Checkout, uid: int, sudo: str) -> None:
    fake_apt(checkout, uid=uid, sudo=sudo)
    lines = checkout.run()
    apt = [line for line in lines if line.startswith("apt")]
    assert [line.split()[1] for line in apt] == ["noninteractive"] * 2
    assert apt[0].endswith(" update")
    assert apt[1].endswith(" install -y --no-install-recommends gcc-arm-none-eabi qemu-system-arm")
    assert len(checkout.run()) == 1


def test_apt_get_fails_while_pip_installs(checkout: Checkout, tmp_path: Path) -> None:
    fake_apt(checkout, uid=0, sudo="exit 1")
    working = (tmp_path / "bin/apt-get").read_text()
    write_program(tmp_path / "bin/apt-get", "#!/bin/sh\necho no network\nexit 1\n")
    done = checkout.attempt()
    assert done.returncode == 3
    assert "no network" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "error: apt-get failed; see above, then run: sudo apt-get "
    )
    assert checkout.lines() == SETUP
    write_program(tmp_path / "bin/apt-get", working)
    assert [line.split()[0] for line in checkout.run()[:-1]] == ["probe", "apt", "apt", "probe"]


def test_what_the_distribution_does_not_have_fails_in_tests_alone(checkout: Checkout, tmp_path: Path) -> None:
    fake_apt(checkout, uid=0, sudo="exit 1")
    stub = tmp_path / "bin/python3"
    stub.write_text(stub.read_text().replace("echo sh", "echo snap-only; exit 4"))
    checkout.env["STUB_MISSING"] = "cmake snap-only"
    done = checkout.attempt("test")
    assert done.returncode == 0, done.stderr
    assert "scons: this distribution has no package snap-only\n" in done.stderr
    assert "still missing after installing: snap-only; the tests that need them fail\n" in done.stderr
    assert next(line for line in checkout.lines() if "install" in line).endswith("recommends cmake")
    assert scons_words(checkout.lines())
    done = checkout.attempt()
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("error: still missing after installing: snap-only; does")


def test_without_the_right_to_install_the_command_is_printed(checkout: Checkout) -> None:
    fake_apt(checkout, uid=1000, sudo="exit 1")
    done = checkout.attempt()
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].endswith(
        "run: sudo apt-get update && "
        "sudo apt-get install -y --no-install-recommends gcc-arm-none-eabi qemu-system-arm"
    )
    assert not any(line.startswith(("apt", "SCons")) for line in checkout.lines())
    assert checkout.attempt().returncode == 3


def test_without_python_it_is_installed_or_the_command_is_printed(checkout: Checkout, tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    for name in ("sh", "dirname", "cat", "cksum", "tr", "readlink", "flock", "env", "mv", "basename"):
        (folder / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is not installed"))
    old = "#!/bin/sh\nexit 1\n"  # a Python that is too old, or has no venv, says so by its exit code
    for name in ("python3", "python3.13", "python3.12", "python3.11"):
        write_program(folder / name, old)
    write_program(folder / "id", "#!/bin/sh\necho 1000\n")
    write_program(folder / "apt-get", "#!/bin/sh\nexit 0\n")
    checkout.env["PATH"] = str(folder)
    done = checkout.attempt()
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1].endswith("--no-install-recommends python3 python3-venv")
