"""The diff of all generated C between two revisions: a refactoring shows that it changes no output by an empty one.

    python tests/diff_generated.py [--head REVISION] BASE    (or ./scons diff-generated base=BASE)

Every example and workload is built for every board by each revision's own compiler. Without --head the working tree is
compared. Exit code 0 without a difference, 1 with one, 2 when a revision cannot be built.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_MODEL = re.compile(r"^model\b.* = ", re.MULTILINE)  # not in files from which others import
RAM = str(64 << 20)  # enough for every model: its C is compared even where it does not fit the board


def models(root: Path) -> dict[str, Path]:
    """Examples and workloads by name."""
    found = {path.parent.name: path for path in sorted((root / "examples").glob("*/model.py"))}
    workloads = sorted((root / "bench" / "workloads").glob("*.py"))
    return found | {path.stem: path for path in workloads if _MODEL.search(path.read_text(encoding="utf-8"))}


def boards(root: Path) -> list[str]:
    return sorted(path.stem for path in (root / "boards").glob("*.toml"))


def generate(root: Path, out: Path) -> int:
    """Build every model for every board into out/<board>/<model>, in this process; what the command line prints as an
    error is kept in a file there, so that a lost error is a difference too. The number of builds that were made."""
    sys.path.insert(0, str(root))
    from autodiff_gen.__main__ import main

    made = 0
    for board in boards(root):
        for name, path in models(root).items():
            folder, printed = out / board / name, io.StringIO()
            words = [
                "build",
                os.path.relpath(path),
                "--board",
                board,
                "--out",
                str(folder),
                "--name",
                name,
                "--ram",
                RAM,
            ]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(printed):
                code = main(words)
            made += 1
            if code:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / "error.txt").write_text(printed.getvalue())
    return made


def _start(root: Path, out: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-P", str(Path(__file__).resolve()), "--generate", str(root), str(out)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.Popen(words, cwd=root, env=environment)


def _files(root: Path) -> set[Path]:
    # A .deps.json lists the compiler's own files by absolute path.
    return {p.relative_to(root) for p in root.rglob("*") if p.is_file() and not p.name.endswith(".json")}


def difference(base: Path, head: Path) -> str:
    """The unified diff of two generated trees."""
    changed = sorted(
        f
        for f in _files(base) | _files(head)
        if not ((base / f).is_file() and (head / f).is_file() and filecmp.cmp(base / f, head / f, False))
    )
    texts = []
    for file in changed:
        sides = [str(side / file) if (side / file).is_file() else os.devnull for side in (base, head)]
        labels = [f"--label=base/{file}", f"--label=head/{file}"]
        done = subprocess.run(["diff", "-u", *labels, *sides], capture_output=True, text=True, check=False)
        texts.append(done.stdout)
    return "".join(texts)


def compare(base: str, head: str | None) -> int:
    with tempfile.TemporaryDirectory(prefix="generated-") as folder:
        trees: dict[str, Path] = {}
        added: list[Path] = []
        try:
            for side, revision in (("base", base), ("head", head)):
                trees[side] = ROOT
                if revision is not None:
                    trees[side] = Path(folder) / f"{side}-tree"
                    words = ["git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach"]
                    if subprocess.run([*words, str(trees[side]), revision], check=False).returncode:
                        return 2
                    added.append(trees[side])
            outs = {side: Path(folder) / side for side in trees}
            running = [_start(tree, outs[side]) for side, tree in trees.items()]
            codes = [process.wait() for process in running]
            if any(codes):
                print("error: a revision could not be built; see above", file=sys.stderr)
                return 2
            text = difference(outs["base"], outs["head"])
            builds = len(list(outs["head"].glob("*/*")))
        finally:
            for tree in added:
                subprocess.run(
                    ["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=False
                )
    sys.stdout.write(text)
    what = "no difference" if not text else f"{text.count(chr(10) + '+++ ')} files differ"
    print(f"{builds} builds: {what}", file=sys.stderr)
    return 1 if text else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", nargs="?", default="HEAD", help="a git revision; HEAD if not given")
    parser.add_argument("--head", help="a git revision; the working tree if not given")
    parser.add_argument("--generate", nargs=2, metavar=("TREE", "OUT"), help="build one tree into a folder")
    args = parser.parse_args()
    if args.generate:
        generate(Path(args.generate[0]), Path(args.generate[1]))
        return 0
    return compare(args.base, args.head)


if __name__ == "__main__":
    sys.exit(main())
