"""Models, programs and commands for tests of exported projects."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

BEGUN = """\
import autodiff_gen as ag
from autodiff_gen import nn, optim
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
"""
WAYS = (
    "model = ag.Model.supervised(net, (5, 3), nn.CrossEntropyLoss(), optim.Adam(lr=0.1))",
    "schedule = optim.lr_scheduler.StepLR(10)\n"
    "model = ag.Model.supervised(net, (1, 3), nn.MSELoss(), optim.SGD(lr=0.1), schedule=schedule, split=True)",
)


def run(*words: object, cwd: Path) -> str:
    """The output; fails the test with all that was printed when the command fails."""
    done = subprocess.run(
        [str(w) for w in words],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


CPP = """\
#include "ag_console.h"
#include "net.h"
#include "test.h"

static net_trainer net;
static test_trainer test;

struct Counter {
    int n;
    Counter() : n(7) {}
};
static Counter counter;

int main() {
    const float x[15] = {}, y[2] = {};
    const uint8_t label[5] = {};
    float first[2], last[2];
    if (net_init(&net, 0) != NET_OK || test_init(&test, 0) != TEST_OK) {
        return 1;
    }
    for (int k = 0; k < 9; k++) {
        float *loss = k == 0 ? first : last;
        if (net_train_step(&net, x, label, 5, NET_DEFAULT_LR, &loss[0]) != NET_OK ||
            test_train_step(&test, x, y, &loss[1]) != TEST_OK) {
            return 1;
        }
    }
    ag_print(counter.n == 7 && last[0] < first[0] && last[1] < first[1] ? "both trained\\n" : "no\\n");
    return 0;
}
"""


def unoptimised(*folders: Path) -> None:
    """Make the build files compile without optimisation, which takes a fraction of the time."""
    for folder in folders:
        for path in (folder / "CMakeLists.txt", folder / "Makefile"):
            if path.is_file():
                path.write_text(re.sub(r"-O3 -ftracer|-O2", "-O0", path.read_text()))


def two(folder: Path) -> list[str]:
    """Two models in the folder; CMake reserves the name of one of them."""
    for name, way in zip(("net", "test"), WAYS, strict=True):
        (folder / f"{name}.py").write_text(BEGUN + way)
    return [str(folder / "net.py"), str(folder / "test.py")]
