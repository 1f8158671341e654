"""SCons tool: all targets of a model and its main program, for one board.

    env = Environment(tools=["train"], toolpath=[autodiff_gen.scons_tools()], AUTODIFF_BOARD="my_board.toml")
    env.TrainFirmware("build/net", "model.py", ["main.c"])
    env.TrainFirmware("build/both", ["a.py", "b.py"], ["main.c"])  # two models in one program

`scons` builds the firmware, `scons run` runs it in QEMU, `scons -h` lists the other targets and options. Commands are
printed in short; `verbose=1` prints them whole. The construction variables are the same as the tool `autodiff`'s.
"""

import os
import shlex
from pathlib import Path

import SCons.Errors
import SCons.Util
from SCons.Script import ARGUMENTS, BUILD_TARGETS, Action, Default

TARGETS = {
    "firmware": "generate C, compile and link (this is the default)",
    "run": "and run it in QEMU, or on the host for the board `host`",
    "link": "firmware of the board link, for autodiff-gen train, pull and push on a cable; upload writes it",
    "hil": "compare it with the host: in QEMU, or on the port of port=; restores the board's state",
    "upload": "and write it to the board with openocd or st-flash",
    "size": "and print flash and RAM used against the board's",
    "report": "print the model's plan: sizes, arena, kernels; write it as a page, report.html, in the build folder",
    "bench": "count instructions of a training step in QEMU",
}
OPTIONS = {
    "port": "for hil and bench: /dev/ttyACM0, socket://host:number; QEMU if not given",
    "baud": "speed of the board's serial port in link and hil, such as 921600; 115200 if not given",
    "steps": "for bench: training steps, 4 if not given",
    "verbose": "1 prints whole commands",
}


def is_verbose(arguments):
    return arguments.get("verbose") in ("1", "yes")


def train_firmware(env, name, model, source=(), files=(), prefix=""):
    """Declare the targets of a model: `name` is the folder and the stem of the generated files, `source` the C and C++
    files, objects and archives of the program, none for a model without one, and `files` the files that it reads.
    Of several models the files have the names of the models, in the folder of `name`; `name` may be a list too.
    `prefix` comes before the names of the targets, for several models in one SConstruct, each in its own folder.
    Returns the program's files, or the archives of the model."""
    env = env.Clone()  # the folder of one model is not in the include path of another
    if not is_verbose(ARGUMENTS):
        env.ShortLines()
    rows = [f"  {prefix + target:<15} {text}" for target, text in TARGETS.items()]
    rows += ["", "Options", *(f"  {key + '=':<15} {text}" for key, text in OPTIONS.items())]
    env.Help("\n".join(["Targets", *rows, ""]), append=True)
    _check_board(env)
    if ARGUMENTS.get("baud"):
        _check_baud(env)
        env.AppendUnique(CCFLAGS=[f"-DAG_UART_BAUD={ARGUMENTS['baud']}"])
    wanted = {str(t).removeprefix(prefix) for t in BUILD_TARGETS if str(t).startswith(prefix)} & set(TARGETS)
    if isinstance(model, (list, tuple)) and len(model) > 1:
        return _several(env, name, model, source, files, wanted, prefix)
    name, model = ((x[0] if isinstance(x, (list, tuple)) else x) for x in (name, model))
    library = env.TrainLib(name, model)
    if "bench" in wanted:
        return _bench(env, name, model, library, wanted, prefix)
    folder = os.path.dirname(name) or "."
    words = shlex.join([_shown(env.File(model).get_abspath()), *map(str, env.AutodiffFlags())])
    if {"link", "run"} <= wanted:
        raise SCons.Errors.UserError(
            f"{prefix}link {prefix}run: the firmware of the link waits for a host; autodiff-gen train {words} "
            "--data FILE runs it and trains it"
        )
    if wanted & {"link", "hil"}:
        made, files = _link(env, name, model, library, prefix), ()
    elif source:
        made = env.Firmware(f"{folder}/firmware", [*source, library])
    else:
        made = library
        missing = wanted & {"run", "upload", "size"}
        if missing:
            target = prefix + min(missing)
            raise SCons.Errors.UserError(
                f"{target}: the model has no main.c, so there is no program; train it on data of your own: "
                f"autodiff-gen train {words} --data FILE; or write a main.c, or link {library[0]} yourself"
            )
    linked = made is not library
    if linked:
        _program(env, made, files, wanted, prefix)
    _report(env, name, model, made if linked else [], prefix)
    return _default(env, folder, made, prefix)


def _several(env, name, models, source, files, wanted, prefix):
    """The program of several models, whose kernels and runtime it has once."""
    names = name if isinstance(name, (list, tuple)) else _names(env, os.path.dirname(name), models)
    stems, folders = [os.path.basename(n) for n in names], {os.path.dirname(n) or "." for n in names}
    try:
        env.AutodiffPackage("targets.model_names").check_different(stems)
    except env.AutodiffPackage("errors").AutodiffError as error:
        raise SCons.Errors.UserError(str(error)) from None
    if len(names) != len(models) or len(folders) > 1:
        raise SCons.Errors.UserError(f"TrainFirmware: give {len(models)} names in one folder, not {names}")
    if alone := wanted & {"link", "hil", "report", "bench"}:
        raise SCons.Errors.UserError(
            f"{prefix}{min(alone)}: it serves one model, and this program has {' and '.join(stems)}; declare one of "
            "them by another TrainFirmware, with prefix= and another folder"
        )
    (folder,) = folders
    libraries = [env.TrainLib(n, m) for n, m in zip(names, models, strict=True)]
    made = (
        env.Firmware(f"{folder}/firmware", [*source, *libraries]) if source else SCons.Util.flatten(libraries)
    )
    if source:
        _program(env, made, files, wanted, prefix)
    return _default(env, folder, made, prefix)


def _names(env, folder, models):
    """The generated files of models, in the folder, after each model's own name."""
    paths = [Path(env.File(m).get_abspath()) for m in models]
    return [os.path.join(folder, p.parent.name if p.name == "model.py" else p.stem) for p in paths]


def _program(env, made, files, wanted, prefix):
    """The targets of a linked program."""
    env.Size(made, f"{prefix}size")
    env.Run([*made, *files], f"{prefix}run")
    if "run" in wanted:  # the scripts of `files` print the source of the data before anything is compiled
        for node, *_ in env.AutodiffBuild().objects:
            env.Requires(node, files)
    env.Upload(made, f"{prefix}upload")


def _default(env, folder, made, prefix):
    """The targets that are built where none is named."""
    commands = env.CompileCommands(f"{folder}/compile_commands.json")
    env.Requires(made, commands)
    env.Alias(f"{prefix}firmware", [made, commands])
    Default(f"{prefix}firmware")
    return made


def _shown(model):
    """The path of a model as the user writes it: relative to the user's folder, the folder of a model.py."""
    path = Path(os.path.relpath(model, os.environ.get("AUTODIFF_LAUNCH_DIR") or os.getcwd()))
    return str(path.parent if path.name == "model.py" else path)


def _check_board(env):
    """UserError if board= names a board that the SConstruct does not build for."""
    named, own = ARGUMENTS.get("board", ""), env.AutodiffBuild().board.id
    if named and named != own and not named.endswith(".toml"):
        raise SCons.Errors.UserError(
            f"board={named}: the SConstruct builds for {own}; let the command line choose: "
            f'AUTODIFF_BOARD=ARGUMENTS.get("board", "{own}")'
        )


def _check_baud(env):
    """UserError if the code of the board's serial port does not read the macro that baud= defines."""
    build = env.AutodiffPackage("targets.build_commands")
    board = env.AutodiffBuild().board
    if not any("AG_UART_BAUD" in path.read_text() for path in build.support_sources(board)):
        raise SCons.Errors.UserError(
            f"baud={ARGUMENTS['baud']}: the port of {board.id} has no speed: {board.target.support} does not read "
            "AG_UART_BAUD"
        )


def _link(env, name, model, library, prefix):
    """The firmware of the board link, `link.elf`, and the alias that compares it with the host."""
    build = env.AutodiffPackage("targets.build_commands")
    made = env.Firmware(
        f"{os.path.dirname(name) or '.'}/link", [build.link_main(), env.LinkLib(name, model), library]
    )
    env.Alias(f"{prefix}link", made)
    port = ARGUMENTS.get("port")
    if port is None:
        port = f"{'exec' if env.AutodiffBuild().board.is_host else 'qemu'}:{made[0]}"
    words = ["-m", "autodiff_gen", "hil", "$SOURCE", "--name", os.path.basename(name), *env.AutodiffFlags()]
    words += ["--baud", ARGUMENTS["baud"]] if ARGUMENTS.get("baud") else []
    check = env.AutodiffPython([*words, "--port", env.AutodiffWord(port)])
    env.AlwaysBuild(env.Alias(f"{prefix}hil", [env.File(model), *made], check))
    return made


def _bench(env, name, model, library, wanted, prefix):
    """Instructions counted in QEMU; with port= cycles on a board, after `upload` if that is a target too."""
    port = ARGUMENTS.get("port")
    others = wanted & {"run", "link", "hil", "size", "report"}
    if others or (port is None and "upload" in wanted):
        raise SCons.Errors.UserError(
            f"bench {min(others or ['upload'])}: bench runs without other targets; only upload with port= may be added"
        )
    done = env.Bench(
        name, model, library, ARGUMENTS.get("steps", "4"), port, f"{prefix}bench", f"{prefix}upload"
    )
    if "upload" in wanted:
        env.Requires(done, env.Alias(f"{prefix}upload"))
    return library


def _report(env, name, model, made, prefix):
    """The alias that prints the plan and writes the page, with the symbols of the program if there is one."""
    folder = Path(env.Dir(os.path.dirname(name) or ".").get_abspath())

    def write(target, source, env):
        words = ["-m", "autodiff_gen", "report", env.AutodiffWord(source[0].get_abspath())]
        words += ["--name", os.path.basename(name), *env.AutodiffFlags()]
        words += ["--force", "--out", env.AutodiffWord(folder / "report.html")]
        words += ["--elf", env.AutodiffWord(source[1].get_abspath())] if made else []
        # what bench has recorded so far
        words += (
            ["--bench", env.AutodiffWord(folder / "bench.json")] if (folder / "bench.json").is_file() else []
        )
        status = env.Execute(env.AutodiffPython(words))
        if made and not status:
            env.AutodiffUsage(source[1].get_abspath())
        return status

    env.AlwaysBuild(env.Alias(f"{prefix}report", [env.File(model), *made[:1]], Action(write, None)))


def generate(env):
    here = str(Path(__file__).resolve().parent)
    for tool in ("autodiff", "firmware", "bench"):
        env.Tool(tool, toolpath=[here])
    env.AddMethod(train_firmware, "TrainFirmware")


def exists(env):
    return True
