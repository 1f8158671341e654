"""The library's part of a PlatformIO build: generates the trainer, and compiles it with the kernels of the board.

Its options are OPTIONS, each as custom_autodiff_<option> of an environment; docs/platformio.md explains them.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

from SCons.Errors import UserError
from SCons.Script import DefaultEnvironment

OPTIONS = ("model", "name", "board", "kernels", "ram", "python", "samples", "trust_board")
PREFIX = "custom_autodiff_"
SHELL = '$`"\\;|&<>'  # characters that a path may not have in PlatformIO's commands


class Mistake(Exception):
    """A mistake of the user; one line."""


def add(env, home):
    """Declare the generated C, the kernels and the samples in `env`, the library's environment. `home`: its folder."""
    try:
        env.Tool("autodiff", toolpath=[os.path.join(home, "site_scons", "site_tools")])
        error = env.AutodiffPackage("errors").AutodiffError
        try:
            declare(env, Options(env))
        except (error, UserError) as mistake:
            raise Mistake(mistake) from None
    except Mistake as mistake:
        sys.stderr.write(f"Error: {mistake}\n")
        env.Exit(1)


class Options:
    """The environment's options, checked. Paths are relative to the project's folder, and returned absolute."""

    def __init__(self, env):
        self.section = f"[env:{env['PIOENV']}]"
        self.project = env.subst("$PROJECT_DIR")
        given = {n.removeprefix(PREFIX): v for n, v in env.GetProjectOptions() if n.startswith(PREFIX)}
        for name in given:
            if name not in OPTIONS:
                near = env.AutodiffPackage("targets.schema").near(name, OPTIONS)
                raise Mistake(f"{self.section}: unknown option {PREFIX}{name}{near}")
        for name in OPTIONS:
            setattr(self, name, os.path.expanduser(given.get(name, "").strip()))
        if not self.model:
            raise Mistake(
                f"{self.section} of platformio.ini has no {PREFIX}model: add {PREFIX}model = model.py"
            )
        whole = self.path(self.model)  # one path may have spaces
        self.models = [whole] if os.path.isfile(whole) else [self.path(m) for m in words(self.model)]
        if missing := [m for m in self.models if not os.path.isfile(m)]:
            raise Mistake(f"{PREFIX}model = {' '.join(given['model'].split())}: no such file: {missing[0]}")
        self.names = self.name.replace(",", " ").split() or [default_name(m) for m in self.models]
        if len(self.names) != len(self.models):
            raise Mistake(
                f"{PREFIX}name = {self.name}: give {len(self.models)} names, with spaces between them"
            )
        for name in self.names:
            if not name.isidentifier() or not name.isascii():
                raise Mistake(f"{name!r} cannot be the name of C files and functions: set {PREFIX}name")
        env.AutodiffPackage("targets.model_names").check_different(self.names)
        if self.ram and not (self.ram.isascii() and self.ram.isdecimal()):
            raise Mistake(f"{PREFIX}ram = {self.ram}: must be a number of bytes")
        if self.trust_board not in ("", "yes", "no"):
            raise Mistake(f"{PREFIX}trust_board = {self.trust_board}: must be yes or no")
        self.trusted = self.trust_board == "yes"
        if self.board.endswith(".toml") or "/" in self.board:
            self.board = self.path(self.board)
        self.kernels = ",".join(self.path(k) if "/" in k else k for k in self.kernels.split(","))
        if self.python and ("/" in self.python or shutil.which(self.python) is None):
            self.python = self.path(self.python)
            if not os.access(self.python, os.X_OK):
                raise Mistake(f"{PREFIX}python = {given['python']}: no such program")

    def path(self, text):
        return os.path.normpath(os.path.join(self.project, text))


def words(text):
    """The paths of an option; one with spaces is in quotes."""
    try:
        return shlex.split(text)
    except ValueError:  # a quote without its end
        return text.split()


def default_name(model):
    """The folder's name when the file is called model.py and the name is valid in C, otherwise the file's stem."""
    path = Path(model)
    folder = path.parent.name
    return folder if path.name == "model.py" and folder.isascii() and folder.isidentifier() else path.stem


def declare(env, options):
    """What `add` declares, by checked options. Raises Mistake, UserError, or an error of the generator's package."""
    profile = board_profile(env, options)
    env.Replace(
        AUTODIFF_BOARD=profile,
        AUTODIFF_KERNELS=options.kernels,
        AUTODIFF_RAM=options.ram,
        AUTODIFF_PYTHON=options.python,
        AUTODIFF_TRUST_BOARD=options.trust_board,
    )
    for word in ("GEN", "DATA"):
        env[f"AUTODIFF_{word}COMSTR"] = "Generating $TARGET"
    build = env.AutodiffBuild()
    folder = os.path.join(env.subst("$BUILD_DIR"), "autodiff")
    made = [
        env.TrainSources(os.path.join(folder, name), model)
        for name, model in zip(options.names, options.models, strict=True)
    ]

    include = [str(path) for path in build.backends.include_dirs()]
    if wrong := next((path for path in include if set(SHELL) & set(path)), None):
        raise Mistake(f"{wrong}: PlatformIO gives this path to a shell: rename the folder without {SHELL}")
    env.Append(CPPPATH=[env.Dir(folder), *include])
    compiler = env.Clone().AutodiffWithoutShell()
    # The program and its tests use the same objects.
    compiler["CPPDEFINES"] = [
        d for d in env.get("CPPDEFINES", []) if d not in ("PIO_UNIT_TESTING", "UNIT_TEST")
    ]
    compiler.Append(CFLAGS=["-std=c99"], CCFLAGS=["-fno-strict-aliasing", "-fno-math-errno"])
    objects = [
        compile_one(compiler, f"{folder}/{name}{end}", source, [env.AutodiffContractFlag()])
        for name, files in zip(options.names, made, strict=True)
        for end, source in (("", files[0]), ("_params", files[2]))
    ]
    kernels = {}
    for source in build.backends.sources():
        own = compiler.Override({"CPPPATH": [str(source.headers), *compiler["CPPPATH"]]})
        cflags = [env.AutodiffWord(f) for f in source.cflags]
        (kernels[source.object],) = compile_one(
            own, f"{folder}/kernels/{source.object}", str(source.path), cflags
        )
    if emulated(env):  # the platform contains the runtime
        env["SRC_FILTER"] = "-<*>"
    elif not any(d[0] == "AG_BOARD" for d in env.get("CPPDEFINES", []) if isinstance(d, tuple)):
        env.Append(CPPDEFINES=[("AG_BOARD", build.board.id)])
    if not emulated(env) and "arduino" in env.get("PIOFRAMEWORK", []):
        support = Path(env.AutodiffPackage("targets.installation").boards()) / "support"
        port = [
            *sorted(support.glob("arduino/*.cpp")),
            support / env.AutodiffPackage("targets.platformio").PORT_DEFAULTS,
        ]
        objects += [compile_one(env, f"{folder}/arduino/{p.stem}", str(p), []) for p in port]
    name = "_".join(options.names)
    archive = env.StaticLibrary(os.path.join(folder, name), objects)
    if "PIO_UNIT_TESTING" in env.get("CPPDEFINES", []):  # tests may call any kernel
        linked = [env.StaticLibrary(os.path.join(folder, f"{name}_all_kernels"), list(kernels.values()))]
    else:
        linked = [
            env.CalledKernels(os.path.join(folder, f"lib{n}_kernels.a"), files[3], kernels)
            for n, files in zip(options.names, made, strict=True)
        ]
    env.Prepend(LIBS=[archive, *linked])
    if options.samples:
        samples(env, options, folder)


def board_profile(env, options):
    """A board's name, or the path of the user's own file, that agrees with what PlatformIO says about the board."""
    boards, platformio = env.AutodiffPackage("targets.board"), env.AutodiffPackage("targets.platformio")
    board_id = env.get("BOARD", "")
    if not options.board and not board_id:
        raise Mistake(f"{options.section} has no board: set board, or {PREFIX}board to a profile")
    profile = options.board or platformio.profile_of(board_id)
    if board_id:
        ram = int(options.ram) if options.ram else None
        loaded = boards.load(profile, trusted=options.trusted)
        platformio.check_profile(loaded, board_id, env.BoardConfig().manifest, ram)
    return profile


def emulated(env):
    """Whether this is a build for the local platform, where QEMU serves files."""
    return env["PIOPLATFORM"] == env.AutodiffPackage("targets.platformio").PLATFORM


def compile_one(env, target, source, flags):
    return env.Object(f"{target}.o", source, CCFLAGS=[*env["CCFLAGS"], *flags])


def samples(env, options, folder):
    """Run the user's script for the records that the program reads: samples.bin next to the program in QEMU,
    otherwise a C file that stores them in the board's flash."""
    script, *words = shlex.split(options.samples)
    script = options.path(script)
    if not os.path.isfile(script):
        raise Mistake(f"{PREFIX}samples = {options.samples}: no such file: {script}")
    target = os.path.join(env.subst("$BUILD_DIR"), "samples.bin") if emulated(env) else f"{folder}/samples.c"
    words = ["$SOURCE", "--out", "$TARGET", *map(env.AutodiffWord, words)]
    made = env.Command(target, script, env.AutodiffPython(words, "$AUTODIFF_DATACOMSTR"))
    env.Depends(made, [env.File(str(p)) for p in sorted(Path(script).parent.glob("*.py"))])
    env.Depends(made, env.Value(os.environ.get("AUTODIFF_DATA", "")))
    if emulated(env):
        env.Requires(env.File("$PROGPATH"), made)
    else:
        DefaultEnvironment().Append(PIOBUILDFILES=compile_one(env, f"{folder}/samples", made[0], []))
