"""`./scons`, the shell script, with a Python that only writes down how it is called: set-up, stamps, locks, apt."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from autodiff_gen.targets.schema import DEFAULT_BOARD

# Replaces python3 and the venv's python. Logs one line per call; `-m venv` copies itself.
PYTHON = r"""#!/bin/sh
log() { printf '%s\n' "$*" >>"$STUB_LOG"; }
case "$*" in
    '-c '*) exit 0 ;;
    '-m venv '*)
        log venv
        for folder in "$@"; do :; done
        rm -rf "$folder"
        mkdir -p "$folder/bin" "$folder/lib/python3.11/site-packages"
        cp "$0" "$folder/bin/python"
        ;;
    *'-m pip '*)
        for file in "$@"; do :; done
        log "pip $(basename "$file")"
        env | grep -E '^(PYTHONHOME|PYTHONPATH|PIP_USER)=' | sed 's/^/leak /' >>"$STUB_LOG"
        env | grep -E '^(PIP_INDEX_URL|https_proxy|PIP_CERT)=' | sed 's/^/kept /' >>"$STUB_LOG"
        [ -z "${STUB_SLEEP-}" ] || sleep "$STUB_SLEEP"
        [ "${STUB_FAIL-}" != "$(basename "$file")" ] || exit 1
        [ ! -e "$STUB_LOG.pins" ] || sed -i "/^$(basename "$file" .txt) /d" "$STUB_LOG.pins"
        ;;
    *'/site_scons/pins.py '*' runtime docs test torch') [ ! -e "$STUB_LOG.pins" ] || cat "$STUB_LOG.pins" ;;
    *'-m autodiff_gen.targets.toolchain '*)
        log probe
        [ -z "${STUB_MISSING-}" ] || [ -e "$STUB_LOG.apt" ] || { echo "$STUB_MISSING"; exit 4; }
        echo sh
        ;;
    *'-m autodiff_gen fetch '*)
        log "fetch ${*##* }"
        [ "${STUB_FAIL-}" != fetch ] || exit 1
        ;;
    *'-m SCons '*) log "SCons in $PWD from $AUTODIFF_LAUNCH_DIR:$(printf ' <%s>' "$@")" ;;
    *) log "unknown $*" ;;
esac
"""
SETUP = ["venv", "probe", "pip runtime.txt"]


@dataclass
class Checkout:
    """A copy of what the wrapper reads, in a folder of its own."""

    root: Path
    log: Path
    env: dict[str, str] = field(default_factory=dict)

    def command(self, *words: str, script: Path | None = None) -> list[str]:
        return [str(script or self.root / "scons"), *words]

    def run(self, *words: str, script: Path | None = None, cwd: Path | None = None) -> list[str]:
        """Run it; the log's new lines, of which the last is SCons' command."""
        before = len(self.lines())
        done = self.attempt(*words, script=script, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return self.lines()[before:]

    def attempt(
        self, *words: str, script: Path | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words, script=script),
            cwd=cwd or self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Checkout:
    return make_checkout(tmp_path, root, "checkout")


def make_checkout(tmp_path: Path, root: Path, name: str) -> Checkout:
    tree = tmp_path / name
    (tree / "autodiff_gen").mkdir(parents=True)
    (tree / "boards/arch").mkdir(parents=True)
    script = (root / "scons").read_text()
    assert f"\nboard=${{board:-{DEFAULT_BOARD}}}\n" in script
    assert " /usr/bin/python3 python3 " in script
    write_program(tree / "scons", script.replace(" /usr/bin/python3 ", " "))
    shutil.copytree(root / "requirements", tree / "requirements")
    shutil.copy(root / "autodiff_gen/targets/toolchain.py", tree / "autodiff_gen")
    (tree / "boards/stm32.toml").write_text("schema = 1\n")
    (tree / "boards/arch/core.toml").write_text("schema = 1\n")
    write_program(tmp_path / "bin/python3", PYTHON)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    env = {"HOME": str(tmp_path), "PATH": path, "STUB_LOG": str(tmp_path / "log")}
    return Checkout(tree, tmp_path / "log", env)


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def scons_words(lines: list[str]) -> str:
    assert lines[-1].startswith("SCons in "), lines
    return lines[-1]


def test_first_run_sets_up_and_the_second_does_not(checkout: Checkout) -> None:
    first = checkout.run("board=stm32", "run")
    assert first[:-1] == SETUP
    assert scons_words(first).endswith("<-P> <-m> <SCons> <-Q> <board=stm32> <run>")
    assert checkout.run("board=stm32", "run") == first[-1:]


@pytest.mark.parametrize("word", ["help", "boards", "models", "clean", "diff-generated", "-h"])
def test_no_toolchain_where_none_is_needed(checkout: Checkout, word: str) -> None:
    assert checkout.run(word)[:-1] == ["venv", "pip runtime.txt"]


def test_the_command_autodiff_gen(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run()
    command = tmp_path / "a link"
    command.symlink_to(checkout.root / ".venv/bin/autodiff-gen")
    subprocess.run([command, "explain", "a b"], cwd=tmp_path, env=checkout.env, check=True)
    assert checkout.lines()[-1] == "unknown -P -m autodiff_gen explain a b"


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
    assert checkout.run("fleet", "boards=5")[:-1] == [*SETUP, "venv", "pip fleet.txt"]
    assert len(checkout.run("fleet")) == 1
    assert (checkout.root / ".venv-fleet/stamp-fleet").exists()
    assert not (checkout.root / ".venv/stamp-fleet").exists()
    with (checkout.root / "requirements/fleet.txt").open("a") as file:
        file.write("# edited\n")
    assert len(checkout.run()) == 2  # other targets do not need it; the probe of their board
    checkout.env["STUB_FAIL"] = "fleet.txt"
    assert checkout.attempt("fleet").returncode == 1
    del checkout.env["STUB_FAIL"]
    assert checkout.run("fleet")[:-1] == ["venv", "pip fleet.txt"]
    assert len(checkout.run("fleet")) == 1


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


def wait_for(condition, seconds: float = 30) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("words", [("bench",), ("bench", "board=host_avx2")])
def test_the_benchmark_installs_its_peers(checkout: Checkout, words: tuple[str, ...]) -> None:
    setup = checkout.run(*words)[:-1]
    assert setup == ["venv", "probe", "pip runtime.txt", "pip bench.txt", "pip torch.txt"]
    assert len(checkout.run(*words)) == 1


@pytest.mark.parametrize("words", [("bench", "board=stm32"), ("bench", "model=w1")])
def test_a_benchmark_in_qemu_has_no_peers(checkout: Checkout, words: tuple[str, ...]) -> None:
    assert checkout.run(*words)[:-1] == SETUP


def test_a_peer_that_cannot_be_installed_is_left_out(checkout: Checkout) -> None:
    checkout.env["STUB_FAIL"] = "bench.txt"
    done = checkout.attempt("bench")
    assert done.returncode == 0
    assert "error: pip could not install requirements/bench.txt; see above" in done.stderr
    assert "scons: the benchmark continues without it" in done.stderr
    assert checkout.lines()[-1].startswith("SCons")
    del checkout.env["STUB_FAIL"]
    assert checkout.run("bench")[:-1] == ["pip bench.txt"]
