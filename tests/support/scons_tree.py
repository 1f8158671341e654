"""A copy of the project in a new folder, and a small model in it, for tests that edit and build."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import scons_object_cache
from bare_environment import bare_python
from checkout import NOT_COPIED

PARTS = ("SConstruct", "autodiff_gen", "bench", "boards", "kernels", "runtime", "site_scons")

MODEL = """\
import numpy as np

import autodiff_gen as ag
from autodiff_gen import nn, optim
from helper import WIDTH

scale = np.loadtxt(__file__.replace("model.py", "scale.txt"))
w = ag.Param("w", np.full((WIDTH, 4), float(scale), np.float32))
net = nn.Sequential(nn.Linear(100, WIDTH), nn.Sigmoid(), nn.Linear(WIDTH, 3), nn.LogSoftmax(dim=1))
model = ag.Model.supervised(net, input=(1, 100), loss=nn.NLLLoss(), optimizer=optim.SGD(lr=0.01))
"""

MAIN = """\
#include "ag_console.h"
#include "net.h"

static net_trainer trainer;

int main(void) {
    return net_init(&trainer, 0u);
}
"""


class Tree:
    """`root` is a copy of the checkout, `model` a folder outside it. Builds run with this Python's SCons."""

    def __init__(self, folder: Path) -> None:
        """A tree in `folder`."""
        self.root = folder / "a copy"
        self.model = folder / "my models" / "net"
        self.variables: dict[str, str] = {}  # of the environment, in addition

    @classmethod
    def of(cls, checkout: Path, folder: Path) -> Tree:
        """A new tree in `folder`."""
        tree = cls(folder)
        tree._fill(checkout)
        return tree

    def _fill(self, checkout: Path) -> None:
        for part in PARTS:
            if (checkout / part).is_dir():
                shutil.copytree(checkout / part, self.root / part, ignore=NOT_COPIED)
            else:
                self.root.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout / part, self.root / part)
        self.model.mkdir(parents=True)
        (self.model / "model.py").write_text(MODEL)
        (self.model / "helper.py").write_text("WIDTH = 5\n")
        (self.model / "scale.txt").write_text("0.5\n")
        (self.model / "main.c").write_text(MAIN)

    def scons(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run SCons in the copy as the wrapper does."""
        env = {
            **scons_object_cache.environment(),
            "AUTODIFF_LAUNCH_DIR": str(cwd or self.root),
            **self.variables,
        }
        command = [bare_python(), "-P", "-m", "SCons", "-Q", *words]
        return subprocess.run(
            command, cwd=self.root, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    def build(self, *words: str, board: str = "host") -> set[str]:
        """Build the model; the steps that SCons took, such as "GEN net.c" and "CC main.o"."""
        done = self.scons(f"model={self.model}", f"board={board}", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
        return {line for line in lines if line.split(" ")[0] in ("GEN", "CC", "AR", "LINK", "COPY", "DATA")}

    def out(self, board: str = "host") -> Path:
        return self.root / "build" / board / "net"
