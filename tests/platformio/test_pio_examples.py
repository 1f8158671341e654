"""The examples under PlatformIO: the program and the tests of each are built for an emulated board, another for each
example, tests of one example for every board, from an empty core folder and without a network."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys

import pytest
from checkout import ROOT
from firmware_build import once
from pio_project import EXAMPLES, QEMU, copy_parts, environment, examples, pio, succeed
from write_vectors import main as write_vectors

from autodiff_gen.errors import PlanError
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.targets import board, platformio

pytestmark = [pytest.mark.pio, pytest.mark.qemu]
PROFILES = {env: EXAMPLES[f"env:{env}"]["board"] for env in QEMU}
EVERYWHERE = "mnist"  # the example that is tested on every board
QUANTISED = "keywords_int8"
TRACED = "tanh_matmul"  # the smallest: strace is slow
OWN = {("platformio", "extra_configs"), ("platformio", "default_envs")}
SAMPLES = {("qemu", "custom_autodiff_samples"), ("hardware", "custom_autodiff_samples")}


def default_envs(name):
    """The emulated boards that an example is for: all, unless it does not fit the smaller ones."""
    given = own_ini(name)["platformio"]["default_envs"]
    return list(QEMU) if given == "${emulated.envs}" else given.split(", ")


def board_of_program(name):
    """The board that `pio run` builds an example for: another for each example, so that every board has some."""
    envs = default_envs(name)
    return envs[examples().index(name) % len(envs)]


def envs_of_tests(name):
    """The boards that `pio test` runs an example on."""
    return default_envs(name) if name == EVERYWHERE else [board_of_program(name)]


def own_ini(name):
    """The text of an example's own file."""
    ini = configparser.ConfigParser(interpolation=None)
    ini.read(ROOT / "examples" / name / "platformio.ini")
    return ini


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the checkout in a path with spaces."""
    return once(tmp_path_factory, "pio tree", copy_parts)


def build(tree, factory, name):
    """The folder of an example after `pio run` and `pio test`, and the folder with their output."""
    folder, core = tree / "examples" / name, tree / f"core of {name}"

    def make(out):
        strace = (
            ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=connect", "-o", str(out / "connects")]
            if name == TRACED
            else []
        )
        (out / "run").write_text(succeed(folder, core, "run", "-e", board_of_program(name), before=strace))
        if name != TRACED:  # there `pio test` writes them, for which it starts a Python that imports PyTorch
            write_vectors(name, str(folder / ".pio" / "vectors"))
        words = ["test", "-v", "--json-output-path", str(out / "test.json")]
        words += [word for env in envs_of_tests(name) for word in ("-e", env)]
        (out / "test").write_text(
            succeed(
                folder,
                core,
                *words,
                timeout=600,
                before=strace and [*strace[:-1], str(out / "more")],
            )
        )

    return folder, once(factory, f"pio {name}", make)


@pytest.fixture(scope="module", params=examples())
def built(request, tree, tmp_path_factory):
    return build(tree, tmp_path_factory, request.param)


def test_pio_builds_it(built):
    folder, out = built
    said = (out / "run").read_text()
    assert re.findall(r"^(qemu_\w+) +SUCCESS", said, re.MULTILINE) == [board_of_program(folder.name)]
    for env in envs_of_tests(folder.name):
        assert (folder / ".pio/build" / env / "firmware.elf").is_file()
    assert re.findall(r"^.*(?:warning|error):.*$", said + (out / "test").read_text(), re.MULTILINE) == []


def test_every_emulated_board_has_programs_and_tests():
    assert {board_of_program(name) for name in examples()} == set(QEMU)
    others = [name for name in examples() if name != EVERYWHERE]
    assert (
        {env for name in others for env in envs_of_tests(name)} == set(QEMU) == set(envs_of_tests(EVERYWHERE))
    )


def test_pio_test_passes(built):
    report = json.loads((built[1] / "test.json").read_text())
    ran = {s["env_name"]: s for s in report["test_suites"] if s["status"] != "SKIPPED"}
    assert sorted(ran) == sorted(envs_of_tests(built[0].name))
    for suite in ran.values():
        names = {c["name"] for c in suite["test_cases"]}
        assert suite["status"] == "PASSED" and {c["status"] for c in suite["test_cases"]} == {"PASSED"}
        assert {"steps_are_pytorchs", "bad_arguments_are_rejected", "gemm_nn_f32", "ger_f32"} <= names


@pytest.mark.parametrize(
    ("name", "env"),
    [(EVERYWHERE, e) for e in QEMU] + [(QUANTISED, envs_of_tests(QUANTISED)[-1])],
)
def test_scons_generates_the_same_bytes(tree, tmp_path_factory, tmp_path, name, env):
    folder, _ = build(tree, tmp_path_factory, name)
    out = f"build/{PROFILES[env]}/{name}"
    files = [f"{name}.c", f"{name}.h", f"{name}_params.c"]
    words = [
        "-m",
        "SCons",
        "-Q",
        f"board={PROFILES[env]}",
        f"model={name}",
        *(f"{out}/{file}" for file in files),
    ]
    done = subprocess.run(
        [sys.executable, "-P", *words],
        cwd=tree, env=environment(tmp_path), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for file in files:
        ours = (folder / ".pio/build" / env / "autodiff" / file).read_bytes()
        assert ours == (tree / out / file).read_bytes()
        assert len(ours) > 200


@pytest.mark.parametrize(
    ("name", "env"), [(n, e) for n in examples() for e in QEMU if e not in default_envs(n)]
)
def test_a_board_is_left_out_only_where_the_model_does_not_fit(tree, tmp_path_factory, name, env):
    """The compiler finds it without PlatformIO; an error of the linker needs the whole build."""
    try:
        compile_file(load_file(name).made, name, kernels=None, board=board.load(PROFILES[env]))
    except PlanError as error:
        assert re.search(rf"^{name} needs .* bytes are missing", str(error))
        return
    folder, _ = build(tree, tmp_path_factory, name)
    done = pio(folder, tree / f"core of {name}", "run", "-e", env)
    assert done.returncode == 1
    assert re.search(r"region .FLASH. overflowed by \d+ bytes", done.stdout), done.stdout


def test_a_model_that_does_not_fit_is_one_clear_line(tree, tmp_path_factory):
    folder, _ = build(tree, tmp_path_factory, "lenet")
    done = pio(folder, tree / "core of lenet", "run", "-e", "qemu_stm32")
    assert done.returncode == 1
    assert re.search(r"^error: lenet needs .* bytes are missing", done.stdout, re.MULTILINE), done.stdout


def test_no_connection_leaves_the_host(tree, tmp_path_factory):
    """From an empty core folder, every process followed."""
    _, out = build(tree, tmp_path_factory, TRACED)
    calls = [line for name in ("connects", "more") for line in (out / name).read_text().splitlines()]
    inet = [c for c in calls if "AF_INET" in c and not re.search(r'inet_addr\("127\.|"::1"', c)]
    assert inet == []


def test_a_build_with_nothing_to_do_does_nothing(tree, tmp_path_factory):
    folder, _ = build(tree, tmp_path_factory, "mnist")
    core = tree / "core of mnist"
    objects = list((folder / ".pio/build/qemu_stm32/autodiff").rglob("*.o"))
    before = {p: p.stat().st_mtime_ns for p in objects}
    succeed(folder, core, "run", "-e", "qemu_stm32")  # links the program after the build for tests
    said = succeed(folder, core, "run", "-e", "qemu_stm32")
    assert not re.search(r"^(?:Compiling|Archiving|Linking|Generating)", said, re.MULTILINE), said
    assert objects and all(p.stat().st_mtime_ns == before[p] for p in objects)


@pytest.mark.parametrize("name", examples())
def test_an_example_says_only_its_boards_and_its_samples(name):
    """All else is in platformio/examples.ini, so that a board is only added there."""
    ini = own_ini(name)
    options = {(section, option) for section in ini.sections() for option in ini[section]}
    streams = (ROOT / "examples" / name / "data.py").is_file()
    assert options == (OWN | SAMPLES if streams else OWN)
    assert ini["platformio"]["extra_configs"] == "../../platformio/examples.ini"


@pytest.mark.parametrize("name", platformio.emulated())
def test_board_files_are_the_profiles(name):
    """After an intended change: autodiff_gen.platformio.manifest_text writes them."""
    text = (ROOT / "platformio" / "boards" / f"{name}.json").read_text()
    assert text == platformio.manifest_text(board.load(name))


def test_there_are_no_other_board_files():
    assert {p.stem for p in (ROOT / "platformio" / "boards").iterdir()} == set(platformio.emulated())
