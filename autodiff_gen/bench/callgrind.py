"""Count the instructions that functions execute on the host, by valgrind's callgrind."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..errors import ToolError
from .qemu_counter import TIMEOUT


def count_calls(program: Path, functions: Iterable[str]) -> tuple[dict[str, int], list[str]]:
    """Function -> instructions of all its calls from other functions, including its callees; and the lines that the
    program prints. Raises ToolError."""
    if shutil.which("valgrind") is None:
        raise ToolError(
            "counting instructions on the host needs valgrind: run: sudo apt-get install -y valgrind; or choose other "
            "cores"
        )
    out = program.with_suffix(".callgrind")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--compress-strings=no"]
    command += ["--compress-pos=no", str(program)]
    try:
        done = subprocess.run(
            command,
            cwd=program.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise ToolError(f"{program}: did not finish in valgrind within {TIMEOUT} seconds") from None
    if done.returncode != 0 or not out.is_file():
        code = done.returncode
        how = f"ends by {signal.Signals(-code).name}" if code < 0 else f"ends with exit code {code}"
        raise ToolError(f"{program.name} in valgrind {how}")
    return inclusive(out.read_text(), functions), done.stdout.splitlines()


def inclusive(text: str, functions: Iterable[str]) -> dict[str, int]:
    """Function -> inclusive cost of its calls in a callgrind profile without compressed names. A call is a line
    `cfn=NAME`, a line `calls=COUNT POSITION`, and a line with the position of the call and the cost."""
    found = dict.fromkeys(functions, 0)
    for m in re.finditer(r"^cfn=(.*)\n(?:c\w+=.*\n)*calls=.*\n\S+ (\d+)$", text, re.MULTILINE):
        if m[1] in found:
            found[m[1]] += int(m[2])
    return found
