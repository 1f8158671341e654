"""A script of the examples' environments: before `pio test` compiles, it writes the test vectors to .pio/vectors for
all boards. They are written again when the model, the compiler or what computes them is newer."""

import os
import subprocess
import sys
from pathlib import Path

Import("env")


def write(checkout, project, folder):
    tool = env.Clone(
        tools=["autodiff"],
        toolpath=[str(checkout / "site_scons" / "site_tools")],
        AUTODIFF_PYTHON=env.GetProjectOption("custom_autodiff_python", ""),
    )
    script = checkout / "tests" / "support" / "write_vectors.py"
    words = [tool.AutodiffFindPython(), "-B", str(script), project.name, str(folder)]
    print("Generating " + os.path.relpath(folder, project))
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it fails"])[-1]
        sys.stderr.write(f"Error: test vectors of {project.name}: {why} ({words[0]})\n")
        env.Exit(1)


def main():
    checkout = Path(env.subst("$PROJECT_TEST_DIR")).resolve().parents[1]
    project = Path(env.subst("$PROJECT_DIR"))
    folder = Path(env.subst("$PROJECT_WORKSPACE_DIR")) / "vectors"
    made = [folder / "kernel_vectors.h", folder / "model_vectors.h"]
    sources = [
        p for d in (project, checkout / "autodiff_gen", checkout / "tests/support") for p in d.rglob("*.py")
    ]
    newest = max(p.stat().st_mtime for p in sources)
    if not all(p.is_file() and p.stat().st_mtime > newest for p in made):
        write(checkout, project, folder)
    env.Append(CPPPATH=[str(folder)])


if "test" in env.GetBuildType():
    main()
