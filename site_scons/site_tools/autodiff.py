"""SCons tool: compile Python models to C archives for one board.

    env = Environment(tools=["default", "autodiff", "firmware"], toolpath=[autodiff_gen.scons_tools()],
                      AUTODIFF_BOARD="stm32")          # a board's name or a path ending in .toml
    net = env.TrainLib("build/net", "model.py")        # -> build/net.c .h _params.c, and archives to link with

Further construction variables, with "" the board's value for the first three:

- AUTODIFF_KERNELS: backends by priority, with commas
- AUTODIFF_RAM: bytes, such as 96K, or by region sram=96K,ccm=64K
- AUTODIFF_PROFILE: "speed" or "size"
- AUTODIFF_POISON: "yes" for C that fills unused memory with NaN
- AUTODIFF_TRUST_BOARD: "yes" for a board file that may name any program and option
- AUTODIFF_PYTHON: the generator's Python; else $AUTODIFF_PYTHON, the checkout's .venv, SCons' own

Standard library only: the interpreter of SCons need not have NumPy.
"""

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import SCons.Action
import SCons.Errors
import SCons.PathList
import SCons.Platform.posix
import SCons.Script
import SCons.Subst

_HERE = Path(__file__).resolve()
# <checkout>/site_scons/site_tools/autodiff.py, or <site-packages>/autodiff_gen/_data/site_tools/autodiff.py
_CHECKOUT = _HERE.parents[2]
_BOARDS = _CHECKOUT / "autodiff_gen" / "targets" / "board.py"
_IN_CHECKOUT = _HERE.parents[1].name == "site_scons" and _BOARDS.is_file()
_SITE = _CHECKOUT if _IN_CHECKOUT else _HERE.parents[3]


def package(name):
    """A module of the generator that needs only the standard library, also if SCons' Python cannot import it itself."""
    sys.path.insert(0, str(_SITE))
    try:
        return importlib.import_module(f"autodiff_gen.{name}")
    finally:
        sys.path.remove(str(_SITE))


class Build:
    """The data shared by all builders of one environment and its clones."""

    def __init__(self, env):
        trusted = env.subst("$AUTODIFF_TRUST_BOARD") in ("yes", "1", "True")
        self.board = package("targets.board").load(
            env.subst("$AUTODIFF_BOARD"), env.subst("$AUTODIFF_PROFILE"), trusted=trusted
        )
        backends = package("kernels.registry")
        listed = env.subst("$AUTODIFF_KERNELS")
        self.backends = backends.for_board(self.board, backends.parse_list(listed) if listed else None)
        self.python = find_python(env)
        self.objects = []
        self.kernels = {}
        self.support = {}


def build_of(env):
    """The environment's `Build`, created on first use; a user's mistake becomes a one-line error of SCons."""
    for folder in (str(_SITE), env.Dir("#").abspath):
        if "$(" in folder or "$)" in folder:  # which SCons takes out of command lines
            raise SCons.Errors.UserError(
                f"{folder}: SCons cannot build where a path has $( or $); rename the folder"
            )
    if env.get("AUTODIFF_BUILD") is None:
        try:
            env["AUTODIFF_BUILD"] = Build(env)
        except (package("errors").AutodiffError, OSError) as error:  # OSError: a name that is too long
            raise SCons.Errors.UserError(str(error)) from None
    return env["AUTODIFF_BUILD"]


# ---- the generator's Python


def find_python(env):
    """Path of the interpreter that runs the generator."""
    wanted = env.subst("$AUTODIFF_PYTHON") or os.environ.get("AUTODIFF_PYTHON", "")
    if wanted:
        found = shutil.which(os.path.expanduser(wanted))
        if found is None:
            raise SCons.Errors.UserError(f"python={wanted}: no such program")
        return os.path.abspath(found)
    own = _CHECKOUT / ".venv" / "bin" / "python"
    return str(own) if _IN_CHECKOUT and own.is_file() else sys.executable


def check_python(python, env):
    """Raise UserError with the install command unless the interpreter can run the generator."""
    missing = "[n for n in ('jinja2', 'numpy', 'autodiff_gen') if find_spec(n) is None]"
    probe = "import sys; from importlib.util import find_spec; assert sys.version_info >= (3, 11)"
    probe += f"; missing = {missing}; missing and sys.exit('no module named ' + missing[0])"
    done = subprocess.run([python, "-P", "-c", probe], env=env["ENV"], capture_output=True, text=True)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it fails"])[-1]
        packages = (
            ["-r", str(_CHECKOUT / "requirements" / "runtime.txt")] if _IN_CHECKOUT else ["autodiff_gen"]
        )
        install = shlex.join([python, "-m", "pip", "install", *packages])
        raise SCons.Errors.UserError(f"{python} cannot run the generator ({why}); run: {install}")


# ---- commands, which start without a shell


def literal(text):
    """A path, protected from substitution."""
    return str(text).replace("$", "$$")


class Word(SCons.Subst.Literal):
    """A word of a command that the program gets as it is."""

    def for_signature(self):
        return self.lstr.replace("$", "\\$ ")  # a "$(" would begin text outside of the signature


def word(text):
    """The text as a word of a command, such as a flag."""
    plain = re.fullmatch(r"[\w.,=+:/%-]+", str(text), re.ASCII)  # equal to the same flag of the user
    return str(text) if plain else Word(str(text))


def run_words(sh, escape, cmd, args, env):
    """SCons' SPAWN without a shell; `escape` is `shlex.quote`, which paths and what `word` returns have gone through.
    Other words, such as the user's CCFLAGS, may have quotes and backslashes of a shell; nothing in them is expanded."""
    try:
        return SCons.Platform.posix.exec_subprocess(shlex.split(" ".join(args)), env)
    except ValueError:
        said, code = "a quote in the words of the command has no end", 2
    except OSError as error:
        said, code = error.strerror, 127
    print(f"error: {cmd}: {said}", file=sys.stderr)
    return code


NO_SHELL = {"SPAWN": run_words, "ESCAPE": shlex.quote}


def include_flags(target, source, env, for_signature):
    """The value of _CPPINCFLAGS: SCons' own substitutes and splits the names of folders once more."""
    folders = SCons.PathList.PathList(env.get("CPPPATH", ())).subst_path(env, target, source)
    found = target[0].RDirs(folders) if target else folders
    return ["$(", *(word(f"-I{folder}") for folder in found), "$)"]


def without_shell(env):
    """Let an environment of ours start compilers and other tools without a shell."""
    env.Replace(**NO_SHELL, _CPPINCFLAGS=include_flags)
    return env


class PythonAction(SCons.Action.CommandAction):
    """A command of the generator's Python, in whichever environment it is run."""

    def execute(self, target, source, env, executor=None):
        return super().execute(target, source, env.Override(NO_SHELL), executor)

    def get_presig(self, target, source, env, executor=None):
        """The words for the signature; SCons' own joins and substitutes them once more."""
        lines = env.subst_list(self.cmd_list, SCons.Subst.SUBST_SIG, target, source, executor=executor)
        return "\n".join(str(w) for line in lines for w in line)


def python_action(env, words, printed=None):
    """An action that runs the generator's Python, whose path is not part of the signature. A script may import from
    its own folder, a module (-m) not from the working folder. `printed`: in place of the command, None for nothing."""
    safe = "-P" if words[0] == "-m" else "-B"
    return PythonAction(["$(", word(build_of(env).python), "$)", safe, *words], cmdstr=printed)


# ---- dependencies of a model


def model_files(env, deps_json, model):
    """Files that the model opened when it was last read, from NAME.deps.json; none before the first build. If that is
    older than one of them, the generator lists them again, so that the build after an edit is not done twice."""
    if not deps_json.is_file():
        check_python(build_of(env).python, env)
        return []
    known = _listed(deps_json.read_text())
    if known is not None and _newest([*known, model]) <= deps_json.stat().st_mtime:
        return known
    words = [build_of(env).python, "-P", "-m", "autodiff_gen", "deps", model]
    done = subprocess.run(words, env=env["ENV"], capture_output=True, text=True)
    fresh = _listed(done.stdout) if done.returncode == 0 else None
    if fresh is not None and fresh == known:
        os.utime(deps_json)
    # The error of a broken model is reported when it is built.
    return fresh if fresh is not None else [f for f in known or () if os.path.isfile(f)]


def depend_on_model_files(target, source, env):
    """After a build: its targets depend on the files that the model has just opened, some for the first time."""
    files = [env.File(literal(f)) for f in _listed(Path(target[3].get_abspath()).read_text())]
    for made in target:
        new = [file for file in files if file not in made.depends]
        if new:
            made.add_dependency(new)
    for file in files:
        file.get_csig()


def _listed(text):
    try:
        data = json.loads(text)
        return data["files"] if data["schema"] == 1 else None
    except (ValueError, KeyError, TypeError):
        return None


def _newest(files):
    try:
        return max(os.stat(f).st_mtime for f in files)
    except OSError:
        return float("inf")


def generator_files():
    """The generator's own sources and templates, and the contract of the kernels, which it reads."""
    folder = _SITE / "autodiff_gen"
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - {"__pycache__", "_data"})
        yield from (os.path.join(parent, f) for f in sorted(files))
    contract = package("kernels.contract")
    yield from (
        str(package("targets.installation").kernels() / f) for f in (contract.HEADER, contract.SHAPES)
    )


# ---- builders


def board_env(env):
    """A clone that compiles, archives and links for the board."""
    build, firmware = build_of(env), package("targets.build_commands")
    board = build.board
    clone = env.Clone()
    for name in ("cc", "cxx", "ar", "gnulink"):
        clone.Tool(name)
    without_shell(clone)
    compiler = firmware.tool(board, "gcc")
    if shutil.which(compiler, path=clone["ENV"]["PATH"]) is None:
        hint = package("targets.toolchain").install_hint(board)
        raise SCons.Errors.UserError(f"board {board.id}: {compiler} is not installed; run: {hint}")
    try:
        package("kernels.libraries").check_libraries(build.backends, [compiler])
    except package("errors").AutodiffError as error:
        raise SCons.Errors.UserError(str(error)) from None
    clone.Replace(
        CC=word(compiler),
        CXX=word(firmware.tool(board, "g++")),
        LINK="$CC",
        AR=word(firmware.tool(board, "ar")),
        ARFLAGS="rcs",
        OBJCOPY=word(firmware.tool(board, "objcopy")),
        OBJSUFFIX=".o",
        LIBSUFFIX=".a",
        LIBPREFIX="lib",
        CFILESUFFIX=".c",
    )
    clone.AppendUnique(
        CCFLAGS=[word(f) for f in firmware.compile_flags(board)],
        CPPPATH=[literal(p) for p in (*build.backends.include_dirs(), *firmware.include_dirs(board))],
    )
    return clone


def board_object(env, target, source, flags=()):
    """One object file of C or C++; `env` is a board_env. Remembered for compile_commands.json."""
    board, ccflags = build_of(env).board, [*env["CCFLAGS"], *flags]
    if not str(source).endswith(".c"):
        given = {str(flag): flag for flag in ccflags}
        kept = package("targets.build_commands").cxx_flags(board, given)
        ccflags = [given.get(flag, flag) for flag in kept]
    node = env.Object(target, source, CCFLAGS=ccflags)[0]
    build_of(env).objects.append((node, env.File(source), flags))
    return node


def archive(env, target, objects):
    """A static library; `env` is a board_env. (SCons' StaticLibrary also runs ranlib, where the host has one.)"""
    return env.Command(target, objects, SCons.Script.Action("$ARCOM", "$ARCOMSTR"))[0]


def kernel_objects(env, folder):
    """The objects of every kernel of the board's backends, by `Source.object`; once per folder."""
    build = build_of(env)
    if folder not in build.kernels:
        compiler = board_env(env)
        objects = build.kernels[folder] = {}
        for source in build.backends.sources():
            # SCons looks for headers where the compiler does
            own = compiler.Override({"CPPPATH": [literal(source.headers), *compiler["CPPPATH"]]})
            target, flags = f"{folder}/kernels/{literal(source.object)}.o", [word(f) for f in source.cflags]
            objects[source.object] = board_object(own, target, literal(source.path), flags)
    return build.kernels[folder]


def kernel_archive(env, folder):
    """Every kernel of the board's backends; the linker keeps those that are called."""
    return archive(board_env(env), f"{folder}/libag_kernels.a", list(kernel_objects(env, folder).values()))


def called_kernels(env, target, deps_json, objects):
    """The archive of the kernels that a model calls, which NAME.deps.json lists; no others are compiled. `objects`: of
    all kernels, by `Source.object`; `env` compiles for the board. The list is read as soon as it is up to date, like
    the includes of a C file; before that, one of another version may be there, with other names or none."""

    def called(node, env=None, path=()):
        listed = Path(node.get_abspath())
        names = json.loads(listed.read_text()).get("kernels", ()) if listed.is_file() else ()
        return [objects[name] for name in names if name in objects]

    env = env.Clone(AUTODIFF_CALLED=lambda target, source, env, for_signature: called(source[0]), **NO_SHELL)
    action = SCons.Script.Action("$AR $ARFLAGS $TARGET $AUTODIFF_CALLED", "$ARCOMSTR")
    return env.Command(target, deps_json, action, source_scanner=SCons.Script.Scanner(called))[0]


def train_sources(env, name, model):
    """Generate NAME.c, NAME.h, NAME_params.c and NAME.deps.json from a model file: the four files, in this order."""
    build = build_of(env)
    base = env.File(f"{name}.c")
    stem, folder = os.path.splitext(base.name)[0], str(base.dir)
    model = env.File(model)
    words = ["-m", "autodiff_gen", "build", "$SOURCE"]
    words += ["--out", "${TARGET.dir}", "--force", "--name", word(stem), *generator_flags(env)]
    words += ["--quiet", *(["--poison"] if env.subst("$AUTODIFF_POISON") else [])]
    outputs = [literal(f"{folder}/{stem}{end}") for end in (".c", ".h", "_params.c", ".deps.json")]
    actions = [
        python_action(env, words, "$AUTODIFF_GENCOMSTR"),
        SCons.Script.Action(depend_on_model_files, None),
    ]
    made = env.Command(outputs, model, actions)
    env.Precious(made)
    env.Depends(made, env.Value(env["ENV"].get("AUTODIFF_DATA", "")))  # where a model looks for its data
    names = [source.object for source in build.backends.sources()]
    env.Depends(made, env.Value(names))  # NAME.deps.json lists the files of the kernels that the model calls
    # The model's files are last, where `depend_on_model_files` adds them: SCons compares the order too.
    files = model_files(env, Path(made[3].get_abspath()), model.get_abspath())
    env.Depends(
        made,
        [
            env.File(literal(f))
            for f in (*generator_files(), *build.board.files, *build.backends.tables, *files)
        ],
    )
    return made


def contract_flag(env):
    """The contraction flag of generated C: no contraction into FMA if only `ref` is used, for bit-equal results."""
    return "-ffp-contract=off" if build_of(env).backends.only_ref else "-ffp-contract=fast"


def model_flags(env):
    """The flags of generated C, after the flags of every file."""
    return [contract_flag(env), *package("targets.build_commands").model_flags(build_of(env).board)]


def train_lib(env, name, model):
    """Generate NAME.h, NAME.c and NAME_params.c from a model file, and build archives for a program to link with.

    `name` may begin with a folder, where the files go; the environment's CPPPATH gets it. Returns the archives.
    """
    build = build_of(env)
    made = train_sources(env, name, model)
    stem, folder = literal(os.path.splitext(made[0].name)[0]), literal(made[0].dir)

    env.AppendUnique(CPPPATH=[env.Dir(folder)])
    for path in (
        *build.backends.include_dirs(),
        *package("targets.build_commands").include_dirs(build.board),
    ):
        env.AppendUnique(CPPPATH=[literal(path)])
    compiler = board_env(env)
    sources = (made[0], made[2])
    flags = model_flags(env)
    objects = [board_object(compiler, f"{folder}/obj/{literal(f.name[:-2])}.o", f, flags) for f in sources]
    library = archive(compiler, f"{folder}/obj/lib{stem}.a", objects)
    kernels = kernel_objects(env, f"{folder}/obj")
    return [library, called_kernels(compiler, f"{folder}/obj/lib{stem}_kernels.a", made[3], kernels)]


def link_lib(env, name, model):
    """NAME_link.o: the model as the firmware of the board link takes it; `name` and `model` as for train_lib."""
    base = env.File(f"{name}.c")
    stem, folder = os.path.splitext(base.name)[0], str(base.dir)
    words = ["-m", "autodiff_gen", "link", "$SOURCE"]
    words += ["--out", "${TARGET.dir}", "--force", "--name", word(stem), *generator_flags(env)]
    action = python_action(env, words, "$AUTODIFF_GENCOMSTR")
    stem, folder = literal(stem), literal(folder)
    made = env.Command(f"{folder}/{stem}_link.c", env.File(model), action)
    env.Precious(made)
    env.Depends(made, [env.File(f"{folder}/{stem}.h"), *(env.File(literal(f)) for f in generator_files())])
    return board_object(board_env(env), f"{folder}/obj/{stem}_link.o", made[0])


def generator_flags(env):
    """The environment's board, kernels and RAM as flags of the generator, for a list-form action."""
    board = build_of(env).board
    own = board.path.parent != package("targets.board").boards_dir()
    words = ["--board", word(board.path if own else board.id), *(["--trust-board"] if board.trusted else [])]
    for key in ("kernels", "ram"):
        value = env.subst(f"$AUTODIFF_{key.upper()}")
        words += [f"--{key}", word(value)] if value else []
    return words


def compile_commands(env, target):
    """compile_commands.json for editors: how every object of the environment is compiled."""
    entries = []
    for node, source, _flags in build_of(env).objects:
        command = "$CCCOM" if str(source).endswith(".c") else "$CXXCOM"
        words = node.get_build_env().subst_list(command, SCons.Subst.SUBST_CMD, [node], [source])[0]
        entry = {"directory": os.getcwd(), "file": str(source), "output": str(node)}
        arguments = shlex.split(" ".join(SCons.Subst.escape_list(words, shlex.quote)))
        entries.append({**entry, "arguments": arguments})
    text = env.Value(json.dumps(entries, indent=1, sort_keys=True) + "\n")
    return env.Command(target, text, SCons.Script.Action(_write_text, None))


def _write_text(target, source, env):
    Path(target[0].get_abspath()).write_text(source[0].read(), encoding="utf-8")


def short_lines(env):
    """Print `CC main.o` instead of whole commands."""
    for name, word in (
        ("CCCOMSTR", "CC"),
        ("CXXCOMSTR", "CXX"),
        ("ARCOMSTR", "AR"),
        ("LINKCOMSTR", "LINK"),
        ("AUTODIFF_GENCOMSTR", "GEN"),
        ("AUTODIFF_COPYCOMSTR", "COPY"),
        ("AUTODIFF_DATACOMSTR", "DATA"),
    ):
        env[name] = f"  {word:<4} ${{TARGET.file}}"


def generate(env):
    env.EnsurePythonVersion(3, 11)
    env.SetDefault(
        AUTODIFF_BOARD=package("targets.schema").DEFAULT_BOARD,
        AUTODIFF_KERNELS="",
        AUTODIFF_RAM="",
        AUTODIFF_PYTHON="",
        AUTODIFF_PROFILE="",
        AUTODIFF_POISON="",
        AUTODIFF_TRUST_BOARD="",
    )
    kept = {
        k: v
        for k, v in os.environ.items()
        if k in ("PATH", "HOME", "TMPDIR", "CMSIS_DSP", "CMSIS_NN", "XDG_CACHE_HOME")
        or k.startswith("AUTODIFF_")
    }
    # In a copy: PlatformIO's is os.environ itself. Starting NumPy's threads takes longer than their work.
    env["ENV"] = {"OPENBLAS_NUM_THREADS": "1", **env["ENV"], **kept}
    if _IN_CHECKOUT:
        env["ENV"]["PYTHONPATH"] = str(_CHECKOUT)
    env.AddMethod(board_env, "BoardEnv")
    env.AddMethod(board_object, "BoardObject")
    env.AddMethod(build_of, "AutodiffBuild")
    env.AddMethod(lambda env, name: package(name), "AutodiffPackage")
    env.AddMethod(find_python, "AutodiffFindPython")
    env.AddMethod(generator_flags, "AutodiffFlags")
    env.AddMethod(model_flags, "AutodiffModelFlags")
    env.AddMethod(lambda env: generator_files(), "AutodiffGenerator")
    env.AddMethod(called_kernels, "CalledKernels")
    env.AddMethod(kernel_archive, "KernelArchive")
    env.AddMethod(python_action, "AutodiffPython")
    env.AddMethod(lambda env, text: word(text), "AutodiffWord")
    env.AddMethod(lambda env, text: literal(text), "AutodiffLiteral")
    env.AddMethod(without_shell, "AutodiffWithoutShell")
    env.AddMethod(compile_commands, "CompileCommands")
    env.AddMethod(short_lines, "ShortLines")
    env.AddMethod(contract_flag, "AutodiffContractFlag")
    env.AddMethod(link_lib, "LinkLib")
    env.AddMethod(train_lib, "TrainLib")
    env.AddMethod(train_sources, "TrainSources")


def exists(env):
    return True
