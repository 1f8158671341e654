"""How `./scons`, the shell script, is called, and calls SCons: words, folders, links, the environment."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from wrapper_checkout import Checkout, make_checkout, scons_words


def test_the_command_autodiff_gen(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run()
    command = tmp_path / "a link"
    command.symlink_to(checkout.root / ".venv/bin/autodiff-gen")
    subprocess.run([command, "explain", "a b"], cwd=tmp_path, env=checkout.env, check=True)
    assert checkout.lines()[-1] == "unknown -P -m autodiff_gen explain a b"


def test_words_reach_scons_unchanged(checkout: Checkout) -> None:
    words = ["test", "args=-k 'a b' \"$HOME\" *", "", "-j", "2"]
    assert scons_words(checkout.run(*words)).endswith("".join(f" <{w}>" for w in ["-Q", *words]))


def test_path_with_spaces_from_another_folder(tmp_path: Path, root: Path) -> None:
    checkout = make_checkout(tmp_path, root, "a folder with  spaces & 'quotes'")
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    line = scons_words(checkout.run(cwd=elsewhere))
    assert line.startswith(f"SCons in {checkout.root} from {elsewhere}:")
    assert len(checkout.run(cwd=elsewhere)) == 1


@pytest.mark.parametrize("relative", [False, True])
def test_through_symlinks(checkout: Checkout, tmp_path: Path, relative: bool) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "links/outer"
    outer.parent.mkdir()
    inner.symlink_to("checkout/scons" if relative else checkout.root / "scons")
    outer.symlink_to("../inner" if relative else inner)
    assert scons_words(checkout.run(script=outer, cwd=tmp_path)).startswith(f"SCons in {checkout.root} ")


def test_by_a_relative_name(checkout: Checkout) -> None:
    done = subprocess.run(
        ["sh", "scons", "help"], cwd=checkout.root, env=checkout.env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert scons_words(checkout.lines()).startswith(f"SCons in {checkout.root} ")


def test_a_link_to_the_environment_of_another_checkout(checkout: Checkout, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (checkout.root / ".venv").symlink_to(other)
    done = checkout.attempt()
    assert (done.returncode, checkout.lines()) == (1, [])
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and line.endswith(f"remove the link: rm '{checkout.root}/.venv'")
    assert [path.name for path in other.iterdir()] == ["pyvenv.cfg"]


def test_settings_of_another_python_stay_out_and_the_index_stays(checkout: Checkout, tmp_path: Path) -> None:
    checkout.env |= {"PYTHONHOME": "/nowhere", "PYTHONPATH": "/nowhere", "PIP_USER": "1"}
    checkout.env |= {
        "PIP_INDEX_URL": "https://index.example",
        "https_proxy": "p.example",
        "PIP_CERT": "c.pem",
    }
    lines = checkout.run("help")
    assert not [line for line in lines if line.startswith("leak")]
    assert sorted(line for line in lines if line.startswith("kept")) == [
        "kept PIP_CERT=c.pem",
        "kept PIP_INDEX_URL=https://index.example",
        "kept https_proxy=p.example",
    ]
