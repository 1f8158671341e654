"""`pio test` has no silent passes: whatever keeps the tests from running to their end makes it red and says why; and
`pio device monitor` shows the program's output."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest
from checkout import ROOT
from firmware_build import once
from pio_project import environment, free_port, pio

pytestmark = [pytest.mark.pio, pytest.mark.qemu]

INI = """\
[platformio]
test_dir = test
[env]
platform = symlink://{platform}
board = mps2_an386
test_framework = custom
custom_test_timeout = 4
custom_qemu_timeout = 60
[env:program]
[env:port]
test_port = socket://127.0.0.1:{port}
monitor_port = socket://127.0.0.1:{port}
"""

PASS, FAIL = "static void good(void) {}", "static void bad(void) { TEST_ASSERT_EQUAL_INT(1, 2); }"
HEAD = '#include "ag_system.h"\n#include "unity.h"\n'

# suite -> (its C, whether it passes, what pio says of it)
SUITES = {
    "good": (f"{PASS} int main(void) {{ UNITY_BEGIN(); RUN_TEST(good); return UNITY_END(); }}", True, "PASS"),
    "failing": (
        f"{PASS} {FAIL} int main(void) {{ UNITY_BEGIN(); RUN_TEST(good); RUN_TEST(bad); return UNITY_END(); }}",
        False,
        "2 is not 1",
    ),
    "early": (
        f"{PASS} int main(void) {{ UNITY_BEGIN(); RUN_TEST(good); ag_system_exit(0); }}",
        False,
        "ended after 1 of its tests, before their summary",
    ),
    "silent": ("int main(void) { return 0; }", False, "ended without a test"),
    "hang": (
        f"{PASS} int main(void) {{ UNITY_BEGIN(); RUN_TEST(good); for (;;) {{ }} }}",
        False,
        "before their summary",
    ),
    "fault": (
        "static void wild(void) { *(volatile int *)0xe0000ff0 = 1; }"
        "int main(void) { UNITY_BEGIN(); RUN_TEST(wild); *(volatile int *)0xf0000000 = 1; return UNITY_END(); }",
        False,
        "before their summary",
    ),
    "none": ("int main(void) { UNITY_BEGIN(); return UNITY_END(); }", False, "No test has run"),
    "liar": (
        f"{PASS} int main(void) {{ UNITY_BEGIN(); RUN_TEST(good); "
        'ag_print("7 Tests 0 Failures 0 Ignored\\n"); return 0; }',
        False,
        "The summary says 7 tests",
    ),
    "late": (
        f"{PASS} int main(void) {{ UNITY_BEGIN(); RUN_TEST(good); return UNITY_END() + 7; }}",
        False,
        "All tests passed, but then: Program",
    ),
}  # fmt: skip
ON_A_PORT = ("good", "failing", "early", "silent", "hang")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with the suites, and (exit code, output, report) of `pio test` in both environments."""

    def make(folder):
        (folder / "src").mkdir()
        (folder / "src" / "main.c").write_text(
            '#include "ag_console.h"\nint main(void) { ag_print("hello\\n"); return 0; }\n'
        )
        shutil.copytree(
            ROOT / "platformio" / "test", folder / "test", ignore=shutil.ignore_patterns("test_on_board")
        )
        for name, (text, _, _) in SUITES.items():
            (folder / "test" / f"test_{name}").mkdir()
            (folder / "test" / f"test_{name}" / "main.c").write_text(HEAD + text + "\n")
        (folder / "platformio.ini").write_text(INI.format(platform=ROOT / "platformio", port=free_port()))
        filters = [w for name in ON_A_PORT for w in ("-f", f"test_{name}")]
        for env, words in (("program", []), ("port", filters)):
            done = pio(
                folder, folder / "core", "test", "-v", "-e", env, *words, "--json-output-path", f"{env}.json"
            )
            (folder / f"{env}.code").write_text(str(done.returncode))
            (folder / f"{env}.said").write_text(done.stdout)

    return once(tmp_path_factory, "pio runner", make)


def suites(project, env):
    """Suite -> (status, what was printed while it ran)."""
    report = json.loads((project / f"{env}.json").read_text())
    said = re.split(r"^Processing test_(\w+) in ", (project / f"{env}.said").read_text(), flags=re.MULTILINE)
    printed = dict(zip(said[1::2], said[2::2], strict=True))
    found = {
        s["test_name"].removeprefix("test_"): s["status"]
        for s in report["test_suites"]
        if s["env_name"] == env
    }
    return {name: (found[name], text) for name, text in printed.items()}


@pytest.mark.parametrize("env", ["program", "port"])
def test_only_what_passes_is_green(project, env):
    assert (project / f"{env}.code").read_text() == "1"
    found = suites(project, env)
    assert set(found) == set(SUITES if env == "program" else ON_A_PORT)
    for name, (status, text) in found.items():
        _, passes, says = SUITES[name]
        assert (status == "PASSED") == passes, f"{name}: {status}\n{text}"
        assert says in text, f"{name}: {text}"


def test_a_good_suite_alone_exits_with_0(project):
    done = pio(project, project / "core", "test", "-e", "program", "-f", "test_good")
    assert done.returncode == 0, done.stdout


def test_a_rejected_port_is_red(project):
    done = pio(
        project,
        project / "core",
        "test",
        "-e",
        "port",
        "-f",
        "test_good",
        "--without-building",
        "--without-uploading",
    )
    assert done.returncode == 1
    assert "Connection refused" in done.stdout and "ended without a test, before their summary" in done.stdout


def test_the_monitor_shows_what_the_program_prints(project):
    """Upload starts QEMU; the monitor, which wants a terminal, finds it."""
    done = pio(project, project / "core", "run", "-e", "port", "-t", "upload")
    assert done.returncode == 0, done.stdout
    ours, its = pty.openpty()
    monitor = subprocess.Popen(
        [sys.executable, "-m", "platformio", "device", "monitor", "-e", "port", "--no-reconnect"],
        cwd=project, env=environment(project / "core"), stdin=its, stdout=its, stderr=its,
    )  # fmt: skip
    os.close(its)
    text, limit = "", time.monotonic() + 60
    while "hello" not in text and time.monotonic() < limit:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                text += os.read(ours, 4096).decode(errors="replace")
            except OSError:  # it has ended
                break
    monitor.terminate()
    monitor.wait(20)
    os.close(ours)
    assert "hello" in text, text


def test_run_gives_the_programs_exit_code(project):
    done = pio(project, project / "core", "run", "-e", "program", "-t", "run")
    assert done.returncode == 0 and "\nhello\n" in done.stdout
