"""Builds firmware for an emulated board, runs it, and starts the emulator on the port of `pio device monitor`.

The board's file in boards/ has the flags. The C for start-up and console is in this platform's folder `support` in an
exported project, otherwise in the checkout.
"""

import os
import shutil
import sys
from pathlib import Path

from SCons.Script import COMMAND_LINE_TARGETS, Action, AlwaysBuild, Copy, Default, DefaultEnvironment

env = DefaultEnvironment()
board = env.BoardConfig()
home = Path(env.PioPlatform().get_dir()).resolve()
sys.path.insert(0, str(home / "builder"))
import emulator

support = home / "support"  # flat, in an exported project
cores = support
if not support.is_dir():
    support = home.parent / "boards" / "support"
    cores = support / "cores"
startup = cores / board.get("build.startup")
runtime = support.parent / "runtime" if (support.parent / "runtime").is_dir() else home.parent / "runtime"


def fail(message):
    sys.stderr.write(f"Error: {message}\n")
    env.Exit(1)


def need(program):
    if shutil.which(program, path=env["ENV"]["PATH"]) is None:
        packages = board.get("build.packages")
        fail(f"{program} is not installed; run: sudo apt-get install -y --no-install-recommends {packages}")


prefix = board.get("build.prefix")
need(f"{prefix}gcc")

env.Replace(
    **{
        name: prefix + tool
        for name, tool in {
            "AR": "gcc-ar",
            "AS": "as",
            "CC": "gcc",
            "CXX": "g++",
            "OBJCOPY": "objcopy",
            "RANLIB": "gcc-ranlib",
            "SIZETOOL": "size",
            "GDB": "gdb",
        }.items()
    },
    LINK="$CC",
    ARFLAGS=["rcs"],
    PROGNAME="firmware",
    PROGSUFFIX=".elf",
    SIZEPROGREGEXP=r"^(?:\.vectors|\.kernels|\.text|\.ARM\.exidx|\.data)\s+(\d+)",
    SIZEDATAREGEXP=r"^(?:\.stack|\.data|\.bss|\.tables)\s+(\d+)",
    SIZECHECKCMD="$SIZETOOL -A -d $SOURCES",
)
machine_flags = [f for f in board.get("build.ccflags") if not f.startswith("-D")]
env.Append(
    CCFLAGS=machine_flags,
    CFLAGS=["-std=c99"],
    CXXFLAGS=[
        "-std=gnu++17",
        "-fno-exceptions",
        "-fno-rtti",
        "-fno-threadsafe-statics",
        "-fno-use-cxa-atexit",
    ],
    ASFLAGS=machine_flags,
    CPPDEFINES=[tuple(f[2:].split("=", 1)) for f in board.get("build.ccflags") if f.startswith("-D")],
    CPPPATH=[str(runtime), str(support / "common"), str(startup)],
    LINKFLAGS=[*board.get("build.linkflags"), "-T", str(support / "common" / "firmware.ld")],
    LIBS=["m"],
)
# The machine's first: its definitions replace defaults in `common`.
folders = (support / board.get("build.support"), support / "common", startup, runtime)
machine = [
    env.BuildLibrary(os.path.join("$BUILD_DIR", "machine", folder.name), str(folder)) for folder in folders
]
env.Prepend(LIBS=machine)

if "nobuild" in COMMAND_LINE_TARGETS:
    program = env.File("$PROGPATH")
else:
    program = env.BuildProgram()
    env.Depends(program, str(support / "common" / "firmware.ld"))
Default(program)

# `pio test` runs the emulator by the script `program`, as if it were a host program.
command = emulator.command(board.get("qemu.command"))
seconds, default = (
    ("custom_test_timeout", "60") if "test" in env["BUILD_TYPE"] else ("custom_qemu_timeout", "600")
)
limit = env.GetProjectOption(seconds, default)
if not limit.isdecimal() or int(limit) == 0:
    fail(f"{seconds} = {limit}: must be a number of seconds")


def write_starter(target, source, env):
    path = Path(target[0].get_abspath())
    path.write_text(source[0].read(), encoding="utf-8")
    path.chmod(0o755)


text = env.Value(emulator.script(command, int(limit)))
starter = env.Command(os.path.join("$BUILD_DIR", "program"), text, Action(write_starter, None))
Default(starter)


def run(target, source, env):
    need(command[0])
    return emulator.run(env.subst("$BUILD_DIR"))


def upload(target, source, env):
    need(command[0])
    option = "test_port" if "test" in env["BUILD_TYPE"] else "monitor_port"
    port = env.subst("$UPLOAD_PORT") or env.GetProjectOption(option, None)
    return emulator.upload(command, env.subst("$BUILD_DIR"), port, int(limit))


samples = env.File(os.path.join("$PROJECT_DIR", "samples.bin"))
if samples.exists():  # of an exported project; the program runs in the build folder
    copied = env.Command(os.path.join("$BUILD_DIR", "samples.bin"), samples, Copy("$TARGET", "$SOURCE"))
    env.Requires(program, copied)

made = [program, starter]
env.AddPlatformTarget(
    name="run",
    dependencies=made,
    actions=env.VerboseAction(run, "Running $PROGPATH in QEMU"),
    title="Run",
    description="Run the program in QEMU until it ends; its exit code is the result",
)
AlwaysBuild(env.Alias("upload", made, env.VerboseAction(upload, "Starting $PROGPATH in QEMU")))
