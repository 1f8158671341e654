"""The package in a user's own project: a fresh environment outside this tree, in a path with a space."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from bare_environment import bare_environment
from checkout import ROOT
from scons_tree import MAIN, MODEL

from autodiff_gen.errors import EXTRAS

SCONSTRUCT = "".join(
    re.findall(
        r"^```python\n(import autodiff_gen\n.*?)^```",
        (ROOT / "docs" / "projects.md").read_text(),
        re.M | re.S,
    )
)

BOARD = """\
schema = 1
name = "a board of my own"
inherits = "stm32"
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The wheel of a checkout with build products and with a file that Git does not track."""
    out = tmp_path_factory.mktemp("wheel")
    used = out / "checkout"
    shutil.copytree(root, used, ignore=shutil.ignore_patterns(".venv*", "build", "__pycache__", ".*_cache"))
    (used / "examples" / "mnist" / ".pio").mkdir(exist_ok=True)
    for product in ("examples/mnist/.pio/firmware.elf", "examples/mnist/untracked.npz"):
        (used / product).touch()
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, used, cwd=out)
    return next(out.glob("*.whl"))


def run(*words: object, cwd: Path) -> str:
    """The command's output; fails the test with all that it printed when it fails."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "AUTODIFF", "PIP_"))}
    done = subprocess.run(
        [str(w) for w in words],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


def install(python: Path, *what: object) -> None:
    words = ("--no-index", "--no-deps", "--no-build-isolation", "--quiet")
    run(sys.executable, "-m", "pip", "--python", python, "install", *words, *what, cwd=python.parent)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path, root: Path) -> dict[str, Path]:
    """Pythons of fresh environments in which the package is installed, by how it is. No test changes them."""
    pythons = {}
    for how, what in {"wheel": [wheel], "editable": ["-e", root]}.items():
        pythons[how] = bare_environment(tmp_path_factory.mktemp("packaging") / f"{how} environment")
        install(pythons[how], *what)
    return pythons


@pytest.fixture(params=["wheel", "editable"])
def python(request: pytest.FixtureRequest, installed: dict[str, Path]) -> Path:
    return installed[request.param]


def test_wheel_holds_the_c_sources_boards_and_tools(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    data = {n.removeprefix("autodiff_gen/_data/") for n in names}
    assert {
        "boards/stm32.toml",
        "boards/arch/cortex_m4f.toml",
        "docs/errors/shapes.md",
        "boards/support/common/firmware.ld",
        "examples/mnist/model.py",
        "kernels/ag_kernels.h",
        "kernels/ref/kernels.toml",
        "requirements/cmsis-dsp.txt",
        "requirements/cmsis-nn.txt",
        "runtime/ag_checkpoint.h",
        "runtime/ag_rng.h",
        "site_tools/autodiff.py",
        "site_tools/firmware.py",
        "site_tools/train.py",
    } <= data
    assert {"autodiff_gen/targets/board.py", "autodiff_gen/codegen/templates/source.c.j2"} <= names
    assert "autodiff_gen/model/project/templates/Makefile.j2" in names
    assert not [n for n in names if n.startswith(("tests/", "bench/", "kernels/"))]


def test_wheel_holds_tracked_files_only(wheel: Path, root: Path) -> None:
    words = ["git", "-c", f"safe.directory={root}", "ls-files", "--cached", "--others", "--exclude-standard"]
    tracked = set(run(*words, cwd=root).splitlines())
    entries = [e for e in zipfile.ZipFile(wheel).infolist() if ".dist-info/" not in e.filename]
    names = [e.filename.removeprefix("autodiff_gen/_data/") for e in entries]
    files = {n.replace("site_tools/", "site_scons/site_tools/", 1) for n in names}
    assert len(files) > 500 and files <= tracked
    assert max(e.compress_size for e in entries) < 30_000  # a data set would take more


def test_wheel_says_where_the_files_are_that_it_leaves_out(
    installed: dict[str, Path], tmp_path: Path
) -> None:
    words = [installed["wheel"], "-m", "autodiff_gen", "explain", "visual_int8"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "weights.npz'; the installed package leaves this file out, a checkout" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.qemu
def test_three_lines_build_a_users_model_for_a_users_board(python: Path, tmp_path: Path) -> None:
    project = tmp_path / "a project"
    project.mkdir()
    (project / "SConstruct").write_text(SCONSTRUCT)
    (project / "my_board.toml").write_text(BOARD)
    (project / "model.py").write_text(MODEL)
    (project / "helper.py").write_text("WIDTH = 5\n")
    (project / "scale.txt").write_text("0.5\n")
    (project / "main.c").write_text(MAIN.replace("    return", '    ag_print("ready\\n");\n    return'))
    (project / "random.py").write_text("raise ImportError('the name of a standard module')\n")
    scons = (python, "-P", "-m", "SCons", "-Q")
    said = run(*scons, cwd=project)
    assert "ready" not in said and {"  GEN  net.c", "  CC   main.o", "  LINK firmware.elf"} <= set(
        said.splitlines()
    )
    assert max(map(len, said.splitlines())) < 100
    made = {p.name for p in (project / "build").iterdir()}
    ends = (".elf", ".bin", ".hex", ".map")
    assert made >= {"net.c", "net.h", "net_params.c", *(f"firmware{end}" for end in ends)}
    assert run(*scons, cwd=project) == "scons: `firmware' is up to date.\n"
    assert "ready" in run(*scons, "run", cwd=project)
    assert re.search(r"sram +\d", said) and run(*scons, "size", cwd=project) in said
    targets = re.findall(r"^  (\w+) {2,}\w", run(*scons, "-h", cwd=project), re.MULTILINE)
    assert targets == ["firmware", "run", "link", "hil", "upload", "size", "report", "bench"]


def test_a_bare_environment_has_no_package(tmp_path: Path) -> None:
    """Or the tests here would pass with an empty wheel."""
    code = "import importlib.util, numpy; print(importlib.util.find_spec('autodiff_gen'))"
    assert run(bare_environment(tmp_path / "bare"), "-c", code, cwd=tmp_path) == "None\n"


def test_console_script(python: Path, tmp_path: Path) -> None:
    lines = run(python.parent / "autodiff-gen", "boards", cwd=tmp_path).splitlines()
    assert any(line.startswith("stm32") for line in lines)


def test_data_comes_from_the_checkout_when_editable(
    root: Path, installed: dict[str, Path], tmp_path: Path
) -> None:
    code = "import autodiff_gen.targets.installation as r; print(r.root()); print(r.scons_tools())"
    assert run(installed["editable"], "-c", code, cwd=tmp_path).splitlines() == [
        str(root),
        str(root / "site_scons/site_tools"),
    ]
    data = Path(run(installed["wheel"], "-c", code, cwd=tmp_path).splitlines()[0])
    assert data.parts[-2:] == ("autodiff_gen", "_data")
    assert installed["wheel"].parents[1] in data.parents


def test_boards_and_tools_need_no_numpy(root: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['numpy'] = None; sys.modules['jinja2'] = None; sys.path.insert(0, sys.argv[1]); "
        "from autodiff_gen.kernels import registry; "
        "from autodiff_gen.targets import board, build_commands, size, toolchain; print(board.load('stm32').name)"
    )
    assert run(sys.executable, "-c", code, root, cwd=tmp_path) == "STM32F405RG\n"


def test_messages_name_the_extras_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [requirement.partition(">=")[0] for requirement in project["dependencies"]]
    assert needed == ["jinja2", "numpy", "pyelftools"]
    for extra, requirement in EXTRAS.values():
        assert requirement in project["optional-dependencies"][extra]


def test_the_compiler_needs_three_packages(tmp_path: Path) -> None:
    """Every command of a model works without the packages of extras, or names the extra that it needs."""
    absent = ("serial", "pygments", "torch", "onnx", "tensorboardX", "sklearn", "SCons")
    commands = (["build", "xor", "--out", "out"], ["explain", "xor"], ["report", "xor", "--out", "x.html"])
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent})); from autodiff_gen.cli.main import main; "
    )
    words = [sys.executable, "-c", f"{code}[main(words) for words in {commands}]"]
    env = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "lower bound of these schedules" in done.stdout and (tmp_path / "out" / "xor.c").exists()
    assert done.stderr.startswith("error: the report needs pygments") and done.stderr.count("\n") == 1
    assert done.stderr.endswith("-m pip install 'pygments>=2.17'  # the extra [report]\n")
