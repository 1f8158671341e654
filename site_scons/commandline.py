"""The command line of `./scons`: targets and key=value, checked before anything is built."""

import difflib
import os
import re
import shlex
import sys
from pathlib import Path

from SCons.Script import ARGLIST, COMMAND_LINE_TARGETS, Exit
from site_tools import train

from autodiff_gen.targets import installation
from autodiff_gen.targets.build_commands import build_folder
from autodiff_gen.targets.schema import DEFAULT_BOARD

ROOT = Path(__file__).resolve().parents[1]

KEYS = {
    "board": f"a name (see boards) or the path of a .toml file; {DEFAULT_BOARD} if not given",
    "model": "an example (see models), a workload (w1), a network (resnet8) or a model file's path; mnist if not given",
    "name": "name of the generated files and functions (default: the name of the model's folder or file)",
    "kernels": "priority list of kernel backends, such as ref or fast,ref",
    **train.OPTIONS,
    "ram": "bytes for the trainer, 96K or by region sram=96K,ccm=64K; the board's RAM minus the stack if not given",
    "profile": "speed or size: the goal of optimisation; the board's if not given",
    "python": "the Python that runs the generator; .venv if not given",
    "poison": "yes fills memory of the arena that holds no value with NaN, to find errors of the plan",
    "trust_board": "yes lets the file of board= name any program, option and path, as docs/boards.md explains",
    "base": "for diff-generated: a git revision; HEAD if not given",
    "minutes": "for fuzz: how long mutated files are read; 30 if not given",
    "seed": "for fuzz: the seed of the run to repeat; a random one is printed if not given",
    "boards": "for fleet: how many virtual boards; 10 if not given",
    "rounds": "for fleet: how many rounds; 3 if not given",
    "strategy": "for fleet: a strategy of Flower and its options, such as FedAdam,eta=0.03; FedAvg if not given",
    "args": 'further arguments of pytest, such as args="-k wrapper -x", or for fleet of autodiff-gen fleet',
}
OF_FLEET = (
    "model",
    "name",
    "boards",
    "rounds",
    "strategy",
    "args",
    "python",
)  # keys that the target fleet reads
TARGETS = {
    **train.TARGETS,
    "pio": "write a self-contained PlatformIO project",
    "bench": "count instructions of a training step in QEMU; without board= and model= measure all, write the tables",
    "bench-kernels": "count the instructions of single kernels in QEMU; needs no model",
    "bench-costs": "measure the costs of operations on the board's core in QEMU: the section [cost] of its file",
    "test": "run all tests",
    "fleet": "train a model on many virtual boards, with Flower as the server; .venv-fleet is made for it",
    "fuzz": "read mutated files of all formats, and frames of the board link, for minutes=; seed= repeats a run",
    "docs": "build the documentation as a site, build/site/index.html, with search; no server is needed",
    "diff-generated": "print how the C of all examples for all boards differs from the C of base=",
    "boards": "list the boards",
    "models": "list the example models",
    "clean": "remove the build folder of board= and model=, or all when neither is given",
    "help": "print this",
}


def fail(message):
    """One line, and exit code 1."""
    sys.stdout.flush()
    print(f"error: {message}", file=sys.stderr)
    Exit(1)


def unknown(what, word, known):
    """Fail with the closest match and the list."""
    match = difflib.get_close_matches(word, known, n=1)
    hint = f"; did you mean {match[0]}?" if match else ""
    fail(f"unknown {what} {word!r}{hint} (known: {', '.join(known)})")


class Options:
    """The checked command line. Paths are made absolute, relative to the user's working folder."""

    def __init__(self):
        given = {}
        for key, value in ARGLIST:
            if key not in KEYS:
                unknown("option", f"{key}=", [f"{k}=" for k in KEYS])
            if key in given and given[key] != value:
                fail(f"{key}= is given twice: {given[key]} and {value}")
            given[key] = value
        self.targets = [str(t) for t in COMMAND_LINE_TARGETS] or ["firmware"]
        for target in self.targets:
            if target not in TARGETS and "/" not in target:
                unknown("target", target, list(TARGETS))
        self.given = given
        self.launch = Path(os.environ.get("AUTODIFF_LAUNCH_DIR") or os.getcwd())
        self.ram = given.get("ram", "")
        size = "[0-9]+[KkMm]?"
        if self.ram and not re.fullmatch(rf"{size}|(\w+={size})(,\w+={size})*", self.ram):
            fail(
                f"ram={self.ram}: must be bytes, such as 98304 or 96K, or bytes of each region, sram=96K,ccm=64K"
            )
        units = {"": 1, "K": 1 << 10, "M": 1 << 20}  # in bytes: the name of the build folder has them
        self.ram = re.sub(r"(?<!\w)(\d+)([KkMm]?)", lambda m: str(int(m[1]) * units[m[2].upper()]), self.ram)
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", given.get("name", "_")):
            fail(f"name={given['name']}: must be a name in C: letters, digits and _")
        self.steps = given.get("steps", "4")
        if not (self.steps.isdecimal() and self.steps.isascii() and int(self.steps)):
            fail(f"steps={self.steps}: must be a number of training steps")
        self.baud = given.get("baud", "")
        if self.baud and not (self.baud.isdecimal() and self.baud.isascii() and int(self.baud)):
            fail(f"baud={self.baud}: must be a number of bits per second, such as 921600")
        self.minutes = given.get("minutes", "30")
        if not re.fullmatch("[0-9]{1,6}", self.minutes, re.ASCII) or not int(self.minutes):
            fail(f"minutes={self.minutes}: must be a number of minutes, such as 30")
        self.seed = given.get("seed", "")
        if self.seed and not re.fullmatch("[0-9]{1,10}", self.seed, re.ASCII):
            fail(f"seed={self.seed}: must be the number that a run of fuzz printed")
        self.profile = given.get("profile", "")
        for key in ("verbose", "poison", "trust_board"):
            if given.get(key, "no") not in ("yes", "no", "1", "0"):
                fail(f"{key}={given[key]}: must be yes or no")
        self.verbose = train.is_verbose(given)
        self.poison, self.trust_board = (
            "yes" if given.get(key) in ("yes", "1") else "" for key in ("poison", "trust_board")
        )
        self.python = given.get("python", "")
        if "/" in self.python:
            self.python = self.path(self.python)
        self.kernels = ",".join(self.path(k) if "/" in k else k for k in given.get("kernels", "").split(","))
        if "kernels" in given and not self.kernels:
            fail("kernels= is empty: write kernels=ref")

    def path(self, text):
        """An absolute path; relative ones start at the user's working folder."""
        return os.path.abspath(self.launch / os.path.expanduser(text))

    @property
    def board(self):
        """A board's name, or the absolute path of its file."""
        text = self.given.get("board", DEFAULT_BOARD)
        return self.path(text) if "/" in text or text.endswith(".toml") else text

    @property
    def model(self):
        """The absolute path of the model file."""
        text = self.given.get("model", "mnist")
        example = ROOT / "examples" / text / "model.py"
        if text and "/" not in text and example.is_file():
            return str(example)
        workloads = installation.benchmarks()
        if text in workloads:
            return str(workloads[text])
        path = Path(self.path(text))
        if path.is_dir() and (path / "model.py").is_file():
            path /= "model.py"
        if not text or not path.is_file():
            unknown("model", text, [*models(), "path/to/model.py"])
        return str(path)

    @property
    def model_name(self):
        """The name of the generated files: name=, the folder's name if the file is model.py, or the file's."""
        if "name" in self.given:
            return self.given["name"]
        path = Path(self.model)
        return path.parent.name if path.name == "model.py" else path.stem

    @property
    def fleet_words(self):
        """Options of `autodiff-gen fleet`."""
        given = [
            w
            for key in ("boards", "rounds", "strategy")
            if key in self.given
            for w in (f"--{key}", self.given[key])
        ]
        names = {word.partition("=")[0] for word in self.words}
        server = [] if {"--synchronous", "--server"} & names else ["--server", "flower"]
        return [*server, *given, *self.words]

    @property
    def words(self):
        """The arguments in args=."""
        try:
            return shlex.split(self.given.get("args", ""))
        except ValueError as error:
            fail(f"args={self.given['args']}: cannot be split into words: {error}")

    def build_folder(self, board_id):
        """build/<board>/<model>, with the options that change the output."""
        changes = {key: getattr(self, key) for key in ("kernels", "ram", "profile", "poison", "baud")}
        alone = {"bench-kernels": "kernels", "bench-costs": "costs"}
        first = alone.get(self.targets[0], self.model_name) if len(self.targets) == 1 else self.model_name
        return build_folder(board_id, first, changes)


def models():
    """Names of the example models."""
    return sorted(path.parent.name for path in (ROOT / "examples").glob("*/model.py"))


def help_text():
    rows = [f"  {name:<15} {text}" for name, text in TARGETS.items()]
    keys = [f"  {name + '=':<15} {text}" for name, text in KEYS.items()]
    return "\n".join(
        [
            "./scons [board=...] [model=...] [target...]",
            "",
            "Targets",
            *rows,
            "",
            "Options",
            *keys,
            "",
            "Files go to build/<board>/<model>/. SCons' own options work too: -j N, -n, -k.",
        ]
    )
