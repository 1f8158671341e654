"""What `./scons`, the shell script, sets up for each target, and when it does so again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from wrapper_checkout import SETUP, Checkout, make_checkout, scons_words, write_program


def test_first_run_sets_up_and_the_second_does_not(checkout: Checkout) -> None:
    first = checkout.run("board=stm32", "run")
    assert first[:-1] == SETUP
    assert scons_words(first).endswith("<-P> <-m> <SCons> <-Q> <board=stm32> <run>")
    assert checkout.run("board=stm32", "run") == first[-1:]


@pytest.mark.parametrize("word", ["help", "boards", "models", "clean", "diff-generated", "-h"])
def test_no_toolchain_where_none_is_needed(checkout: Checkout, word: str) -> None:
    assert checkout.run(word)[:-1] == ["venv", "pip runtime.txt"]


def package_path(checkout: Checkout) -> str:
    """Where a Python that has the checkout's site-packages, and knows nothing else of it, finds autodiff_gen."""
    code = (
        "import site, sys; site.addsitedir(sys.argv[1]); import autodiff_gen; print(*autodiff_gen.__path__)"
    )
    site = checkout.root / ".venv/lib/python3.11/site-packages"
    words = [sys.executable, "-I", "-S", "-c", code, str(site)]
    return subprocess.run(words, cwd="/", capture_output=True, text=True, check=True).stdout.strip()


def test_a_script_in_another_folder_imports_the_package(tmp_path: Path, root: Path) -> None:
    checkout = make_checkout(tmp_path, root, "a folder with  spaces & # 'quotes'")
    checkout.run()
    assert package_path(checkout) == str(checkout.root / "autodiff_gen")
    checkout.root = checkout.root.rename(tmp_path / "moved")
    assert package_path(checkout) == str(tmp_path / "moved/autodiff_gen")


def test_a_checkout_that_was_set_up_without_its_path_file(checkout: Checkout) -> None:
    checkout.run()
    (checkout.root / ".venv/lib/python3.11/site-packages/autodiff_gen.pth").unlink()
    assert len(checkout.run()) == 1  # nothing is installed anew
    assert package_path(checkout) == str(checkout.root / "autodiff_gen")


def test_tests_need_more_and_torch_comes_last(checkout: Checkout) -> None:
    checkout.run()
    assert checkout.run("test")[:-1] == [
        "probe",
        "pip docs.txt",
        "venv",
        "pip fleet.txt",
        "pip test.txt",
        "fetch cmsis",
        "pip torch.txt",
    ]
    assert len(checkout.run("test")) == 1
    assert len(checkout.run()) == 1


def test_packages_that_others_changed_are_installed_again(checkout: Checkout) -> None:
    checkout.run()
    checkout.run("test")
    added = checkout.root / ".venv/lib/added.py"
    added.write_text("")
    differing = Path(f"{checkout.log}.pins")
    lines = {
        "runtime": "runtime numpy 1.0 is installed, not 2.0",
        "torch": "torch torch 2.14.1 is installed, not 2.13.0",
    }
    for names in (["torch"], ["runtime", "torch"]):
        differing.write_text("".join(f"{lines[name]}\n" for name in names))
        assert len(checkout.run()) == 1  # a build is not a test
        done = checkout.attempt("test")
        assert done.returncode == 0, done.stderr
        said = [line.removeprefix("scons: ") for line in done.stderr.splitlines()]
        assert [line for line in said if "not 2." in line] == [lines[name].split(" ", 1)[1] for name in names]
        installed = checkout.lines()[-1 - len(names) : -1]
        assert installed == [f"pip {name}.txt" for name in names]
        assert len(checkout.run("test")) == 1
    checkout.env["STUB_FAIL"] = "torch.txt"
    differing.write_text(lines["torch"])
    done = checkout.attempt("test")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: pip could not install requirements/torch.txt")
    assert added.exists()


def test_installed_versions_are_compared_with_the_pinned_ones(tmp_path: Path, root: Path) -> None:
    """By the script itself, of packages that are only metadata."""
    site = tmp_path / "site"
    for name, version in (("Some_Name", "1.2"), ("torch", "2.13.0+cpu"), ("other", "3.0")):
        write_program(site / f"{name}-{version}.dist-info/METADATA", f"Name: {name}\nVersion: {version}\n")
    (tmp_path / "good.txt").write_text("some-name==1.2 \\\n    --hash=sha256:0\n# a comment\ntorch==2.13.0\n")
    (tmp_path / "old.txt").write_text('torch==2.13.0\nother==2.0 ; python_version >= "3"\nabsent==1\n')
    (tmp_path / "missing.txt").write_text("absent==1\n")
    words = [sys.executable, str(root / "site_scons/pins.py"), str(tmp_path), "good", "old", "missing"]
    done = subprocess.run(words, env={"PYTHONPATH": str(site)}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "old other 3.0 is installed, not 2.0",
        "missing absent is not installed",
    ]


def test_the_documentation_needs_no_toolchain(checkout: Checkout) -> None:
    assert checkout.run("docs")[:-1] == ["venv", "pip runtime.txt", "pip docs.txt"]
    assert len(checkout.run("docs")) == 1


def test_a_fleet_has_an_environment_of_its_own(checkout: Checkout) -> None:
    checkout.env["STUB_FAIL"] = "words"
    assert checkout.attempt("fleet", "bords=5").returncode == 1
    assert checkout.lines() == [*SETUP, "words"]
    del checkout.env["STUB_FAIL"]
    assert len(checkout.run("fleet", "python=python3")) == 1  # which has Flower
    assert checkout.run("fleet", "boards=5")[:-1] == ["words", "venv", "pip fleet.txt"]
    assert len(checkout.run("fleet")) == 1
    assert (checkout.root / ".venv-fleet/stamp-fleet").exists()
    assert not (checkout.root / ".venv/stamp-fleet").exists()
    with (checkout.root / "requirements/fleet.txt").open("a") as file:
        file.write("# edited\n")
    assert len(checkout.run()) == 2  # other targets do not need it; the probe of their board
    checkout.env["STUB_FAIL"] = "fleet.txt"
    assert checkout.attempt("fleet").returncode == 1
    del checkout.env["STUB_FAIL"]
    assert checkout.run("fleet")[:-1] == ["words", "venv", "pip fleet.txt"]
    assert len(checkout.run("fleet")) == 1


def test_moved_checkout_is_set_up_again(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run()
    moved = tmp_path / "moved"
    checkout.root.rename(moved)
    checkout.root = moved
    assert checkout.run()[:-1] == SETUP
    assert len(checkout.run()) == 1


@pytest.mark.parametrize(
    ("edit", "again"),
    [
        ("requirements/runtime.txt", ["pip runtime.txt"]),
        ("requirements/test.txt", []),
        ("boards/stm32.toml", ["probe"]),
        ("boards/arch/core.toml", ["probe"]),
    ],
)
def test_edited_inputs(checkout: Checkout, edit: str, again: list[str]) -> None:
    checkout.run()
    with open(checkout.root / edit, "a") as file:
        file.write("# edited\n")
    assert checkout.run()[:-1] == again
    assert len(checkout.run()) == 1


def test_new_requirements_leave_what_a_user_installed(checkout: Checkout) -> None:
    """Also where installing them fails: they are tried again."""
    checkout.run()
    added = checkout.root / ".venv/lib/added.py"
    added.parent.mkdir(parents=True, exist_ok=True)
    added.write_text("")
    with (checkout.root / "requirements/runtime.txt").open("a") as file:
        file.write("# edited\n")
    checkout.env["STUB_FAIL"] = "runtime.txt"
    assert checkout.attempt().returncode == 1
    del checkout.env["STUB_FAIL"]
    assert checkout.run()[:-1] == ["pip runtime.txt"]
    assert added.exists()


def test_another_board_is_probed_once(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run()
    own = tmp_path / "own.toml"
    own.write_text("schema = 1\n")
    assert checkout.run("board=../own.toml")[:-1] == ["probe"]
    assert len(checkout.run("board=../own.toml")) == 1
    own.write_text("schema = 1 # edited\n")
    assert checkout.run("board=../own.toml")[:-1] == ["probe"]


def test_a_pipe_or_a_device_as_a_board_is_not_read(checkout: Checkout, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        assert scons_words(checkout.run(f"board=../{name}.toml")).endswith(f"<board=../{name}.toml>")


def test_program_that_vanished_is_looked_for_again(checkout: Checkout, tmp_path: Path) -> None:
    tool = tmp_path / "bin/arm-tool"
    write_program(tool, "#!/bin/sh\n")
    stub = tmp_path / "bin/python3"
    stub.write_text(stub.read_text().replace("echo sh", "echo sh arm-tool"))
    checkout.run()
    assert len(checkout.run()) == 1
    tool.unlink()
    assert checkout.run()[:-1] == ["probe"]


@pytest.mark.parametrize("words", [("bench",), ("bench", "board=host_avx2")])
def test_the_benchmark_installs_its_peers(checkout: Checkout, words: tuple[str, ...]) -> None:
    setup = checkout.run(*words)[:-1]
    assert setup == ["venv", "probe", "pip runtime.txt", "pip bench.txt", "pip torch.txt"]
    assert len(checkout.run(*words)) == 1


@pytest.mark.parametrize("words", [("bench", "board=stm32"), ("bench", "model=w1")])
def test_a_benchmark_in_qemu_has_no_peers(checkout: Checkout, words: tuple[str, ...]) -> None:
    assert checkout.run(*words)[:-1] == SETUP
