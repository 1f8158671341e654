"""SCons tool: programs for a board, from its profile. Needs the tool `autodiff`, which knows the board.

    made = env.Firmware("build/firmware", ["main.c", net])  # -> build/firmware.elf .map, on a board .bin and .hex too
    env.Size(made)      # `scons size` prints flash and RAM used, and the board's flash and RAM
    env.Run(made)       # `scons run` runs it in QEMU, in its own folder; fails if the program fails
    env.Upload(made)    # `scons upload` writes it with openocd or st-flash

With several programs in one project, name= gives each its own alias. Nothing runs unless its alias is a target.
"""

import os
import shlex
import shutil
import subprocess
import sys

import SCons.Errors
from SCons.Script import Action, Flatten

NEXT = "Next: the target report shows memory and the C of each step, size and bench their cost; -h lists all"


CXX = (".cpp", ".cc", ".cxx")


def firmware(env, target, source):
    """Link C and C++ sources, objects and archives with the board's start-up and support code. Returns the files."""
    board = env.AutodiffBuild().board
    support = env.AutodiffPackage("targets.build_commands")
    if board.target.support.name == env.AutodiffPackage("targets.platformio").ARDUINO:
        raise SCons.Errors.UserError(
            f"board {board.id}: its start-up code is Arduino's, so PlatformIO builds its programs; "
            f"autodiff-gen export MODEL --board {board.id} --as platformio (or arduino) --out DIR writes a project"
        )
    compiler = env.BoardEnv()
    base = env.AutodiffLiteral(env.File(target))
    folder = os.path.dirname(base) or "."
    objects = list(support_objects(env, folder))
    for item in Flatten([source]):
        name, end = os.path.splitext(os.path.basename(str(item)))
        is_source = end == ".c" or end in CXX
        made = f"{folder}/obj/{env.AutodiffLiteral(name)}.o"
        objects.append(compiler.BoardObject(made, item) if is_source else item)
        if end in CXX and board.is_host:
            compiler["LINK"] = "$CXX"

    # `size` prints the sizes, in one form for all boards.
    map_path = f"{base}.map"
    flags = [f for f in support.link_flags(board, str(env.File(map_path))) if f != "-Wl,--print-memory-usage"]
    flags += env.AutodiffBuild().backends.ldflags
    compiler["AUTODIFF_LINKFLAGS"] = [env.AutodiffWord(f) for f in flags]
    compiler["LINKCOM"] = "$LINK -o $TARGET $LINKFLAGS $SOURCES $AUTODIFF_LINKFLAGS $_LIBDIRFLAGS $_LIBFLAGS"
    link = [Action("$LINKCOM", "$LINKCOMSTR"), Action(print_sizes, None)]
    made = compiler.Command([f"{base}.elf", map_path], objects, link)
    compiler.Depends(made, [compiler.File(env.AutodiffLiteral(f[2:])) for f in flags if f.startswith("-T")])
    if not board.is_host:
        for end, form in ((".bin", "binary"), (".hex", "ihex")):
            copy = Action([["$OBJCOPY", "-O", form, "$SOURCE", "$TARGET"]], "$AUTODIFF_COPYCOMSTR")
            made += compiler.Command(base + end, made[0], copy)
    return made


def support_objects(env, folder):
    """The board's start-up and support code, once per folder."""
    known = env.AutodiffBuild().support
    if folder not in known:
        compiler = env.BoardEnv()
        paths = env.AutodiffPackage("targets.build_commands").support_sources(env.AutodiffBuild().board)
        known[folder] = [
            compiler.BoardObject(
                f"{folder}/obj/support/{env.AutodiffLiteral(f'{path.parent.name}/{path.stem}')}.o",
                env.AutodiffLiteral(path),
            )
            for path in paths
        ]
    return known[folder]


def always(env, name, source, function):
    """An alias that runs `function(env, path of the first source)` each time; a number is an exit code."""

    def act(target, source, env):
        sys.stdout.flush()
        error = env.AutodiffPackage("errors").AutodiffError
        try:
            return function(env, source[0].get_abspath())
        except error as mistake:
            print(f"error: {mistake}", file=sys.stderr)
            return 1

    alias = env.Alias(name, source, Action(act, None))
    env.AlwaysBuild(alias)
    return alias


def size(env, source, name="size"):
    """Print flash and RAM used, and the board's flash and RAM."""
    return always(env, name, source, print_usage)


def run(env, source, name="run"):
    """Run the first source after all are built; its exit code is the exit code of the action."""
    return always(env, name, source, run_program)


def upload(env, source, name="upload"):
    """Write the program to the board's flash."""
    return always(env, name, source, upload_program)


def print_usage(env, elf):
    for line in env.AutodiffPackage("targets.size").usage(env.AutodiffBuild().board, elf):
        print(f"  {line}")
    sys.stdout.flush()


def print_sizes(target, source, env):
    """The last step of linking."""
    print_usage(env, target[0].get_abspath())


def run_program(env, elf):
    board = env.AutodiffBuild().board
    argv = env.AutodiffPackage("targets.build_commands").qemu_argv(board, elf)
    if shutil.which(argv[0], path=env["ENV"]["PATH"]) is None:
        hint = env.AutodiffPackage("targets.toolchain").install_hint(board)
        raise env.AutodiffPackage("errors").ToolError(f"{argv[0]} is not installed; run: {hint}")
    print_command(env, argv)
    code, text = shown(argv, os.path.dirname(elf))
    curve = env.AutodiffPackage("report.loss_curve").loss_curve(text)
    if code == 0 and curve is not None:
        print(f"\n{curve}\n\n{NEXT}")
        sys.stdout.flush()
    return code


def print_command(env, argv):
    """Print the program that is run where whole commands are printed."""
    if "CCCOMSTR" not in env:
        print(shlex.join(argv), flush=True)


def shown(argv, folder):
    """Run a program and show its output as it comes; returns its exit code and the output."""
    whole = bytearray()
    with subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as program:
        while part := program.stdout.read1(4096):
            whole += part
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
    return program.returncode, whole.decode(errors="replace")


def upload_program(env, elf):
    binary = os.path.splitext(elf)[0] + ".bin"
    argv = env.AutodiffPackage("targets.build_commands").upload_argv(env.AutodiffBuild().board, binary)
    print_command(env, argv)
    return subprocess.run(argv, stdin=subprocess.DEVNULL).returncode


def generate(env):
    if not hasattr(env, "BoardEnv"):
        raise SCons.Errors.UserError('the tool "firmware" needs the tool "autodiff" before it')
    env.AddMethod(firmware, "Firmware")
    env.AddMethod(print_usage, "AutodiffUsage")
    env.AddMethod(size, "Size")
    env.AddMethod(run, "Run")
    env.AddMethod(upload, "Upload")


def exists(env):
    return True
