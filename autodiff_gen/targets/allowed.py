"""The values that a board file and a kernel table may have without --trust-board: they choose compilers and options,
and start, load, read and write nothing else. Stdlib only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import AutodiffError, BoardError
from ..reading import regular
from ..reading.limits import TEXT
from .toml_file import shown

TRUST = "--trust-board"
# A rule returns the first part of a value that is not allowed.
Rule = Callable[[Any], Any]


def check_allowed(data: Mapping[str, Any], path: Path) -> None:
    """Raise BoardError for the first value of a board file that it may have only if the user trusts it."""
    for dotted, rule in _RULES.items():
        values: Any = data
        for key in dotted.split("."):
            values = values.get(key) if isinstance(values, Mapping) else None
        if values is not None:
            reject(rule(values), path, dotted, BoardError)
    for key in data.get("platformio", {}):
        if key not in _PLATFORMIO:
            reject(key, path, f"platformio.{key}", BoardError)


def check_specs(flags: Iterable[str], prefix: str, path: Path) -> None:
    """Raise BoardError for a file of specs that the compiler may not have: it would read the working folder's, which
    may name programs."""
    used = next((flag for flag in flags if "specs=" in flag), None) if prefix != "arm-none-eabi-" else None
    reject(used, path, "target", BoardError, f" with {prefix}gcc")


def check_inside(folder: Path, own: Path, path: Path, dotted: str, error_type: type[AutodiffError]) -> None:
    """Raise an error of this kind for a folder or a file outside of the folder `own`."""
    if not folder.resolve().is_relative_to(own.resolve()):
        reject(str(folder), path, dotted, error_type, f" outside of {own}")


def check_folder(
    folder: Path, path: Path, dotted: str, error_type: type[AutodiffError], trusted: bool
) -> None:
    """Raise an error of this kind unless the C files and linker scripts of a user's folder are regular files of text.
    Links to files outside of the folder are allowed only if it is trusted."""
    for file in sorted(f for end in ("[chS]", "ld") for f in folder.glob(f"*.{end}")):
        regular.read_text(file, error_type, TEXT)
        if not trusted:
            check_inside(file, folder, path, dotted, error_type)


def reject(value: Any, path: Path | str, dotted: str, error_type: type[AutodiffError], why: str = "") -> None:
    """Raise an error of this kind for a value, unless it is None."""
    if value is not None:
        raise error_type(
            f"{path}: {dotted}: {shown(value)}{why} needs a file that you trust, as docs/boards.md "
            f"explains; if you do, add {TRUST} (./scons: trust_board=yes)"
        )


def _pattern(pattern: str) -> Rule:
    matches = re.compile(pattern, re.ASCII).fullmatch
    return lambda value: None if isinstance(value, str) and matches(value) else value


def _each(rule: Rule) -> Rule:
    return lambda values: next((v for v in values if rule(v) is not None), None)


def _sequence(allowed: str) -> Rule:
    """A list of words without spaces. Joined by spaces, the words match repetitions of the pattern, which allows a word
    together with the words after it that are its arguments."""
    matches = re.compile(allowed, re.ASCII | re.VERBOSE).match

    def rule(words: Sequence[str]) -> str | None:
        place = 0
        while place < len(words):
            text = " ".join(w.replace(" ", "\t") for w in words[place : place + 2]) + " "
            found = matches(text)
            if found is None:
                argument = [w for w in words[place + 1 : place + 2] if not w.startswith("-")]
                return " ".join([words[place], *argument])
            place += found[0].count(" ")
        return None

    return rule


# ---- options of compilers and linkers; `[-]-` matches `--`, and hides them from the search for options of autodiff-gen

_MACRO = "_*[A-Z][A-Za-z0-9_]*"  # functions and variables of C are in small letters
_WARNING = "W[a-z][a-z0-9+-]*(=[a-z0-9-]+)?"
_NUMBER = "(0[xX][0-9a-fA-F]+|[0-9]+)[KM]?"
_SYMBOL = r"[A-Za-z_.][\w.]*"
_LINKER = rf"""(
    [-]-defsym[=,]{_SYMBOL}={_NUMBER} | (-u|[-]-undefined|-e|[-]-entry)[=,]?{_SYMBOL}
  | [-]-section-start[=,][.\w]+={_NUMBER} | -T(text|data|bss)={_NUMBER}
  | [-]-(no-)?(gc-sections|relax|print-gc-sections|warn-[a-z-]+|fatal-warnings|undefined|check-sections|as-needed
           |whole-archive|eh-frame-hdr|print-memory-usage|allow-multiple-definition|emit-relocs)
  | [-]-build-id(=(none|sha1|md5|{_NUMBER}))? | [-]-sort-(common|section=(name|alignment)) | [-]-hash-style=[a-z]+
  | [-]-orphan-handling=[a-z]+ | [-]-(start|end)-group | [-]-strip-(all|debug) | [-]-cref | -[sSqEr] | -z,[a-z0-9=-]+
)"""
# Options without "=" name no file. These write files all the same, or load and run something.
_FILES = (
    "plugin pass-plugin module profile dump save stack-usage callgraph test-coverage coverage compare-debug time- pch "
    "crash xray auto-profile working-directory offload build- prebuilt"
)
_COMPILER = rf"""(
    -m(?!llvm)[a-z0-9][a-z0-9_.-]*(=[\w.+,-]+)?
  | -fno-[a-z][a-z0-9-]*(=[a-z,-]+)?
  | -f(?!{"|".join(_FILES.split())})[a-z][a-z0-9-]*
  | -f(lto|sanitize|fp-contract|fp-model|visibility|tls-model|excess-precision|stack-reuse|vect-cost-model|cf-protection
      |simd-cost-model|pack-struct|max-[a-z-]+|align-[a-z]+|inline-limit|abi-version|diagnostics-color|tree-[a-z-]+
      |unroll-[a-z-]+|stack-protector[a-z-]*|zero-call-used-regs|trivial-auto-var-init)=[a-z0-9,:-]+
  | -fuse-ld=(bfd|gold|lld|mold)
  | -O([0-3sgz]|fast)? | -g([0-3]|gdb[0-3]?|dwarf(-[2-5])?)? | -std=[a-z0-9+]+ | -ansi | -pedantic(-errors)? | -pipe
  | -pthread | -w | -{_WARNING} | -Wa,-m[a-z0-9=+-]+
  | [-]-?specs=(nano|nosys|rdimon)\.specs
  | -D{_MACRO}(=[\w.+-]*)? | -U{_MACRO}
  | [-]-param(=|\ )[a-z0-9-]+=[0-9]+
)"""
_LINK = rf"""(
    -Wl(,{_LINKER})+ | -l[A-Za-z0-9_+.-]+ | -u\ ?{_SYMBOL} | -static(-libgcc|-libstdc\+\+|-pie)? | -s
  | -no-?pie | -pie | -no(libc|stdlib|defaultlibs|startfiles) | -rdynamic
)"""
compiler_options = _sequence(rf"{_COMPILER}\ ")
linker_options = _sequence(rf"({_COMPILER}|{_LINK})\ ")
header_names = _each(_pattern(r"\w[\w.+-]*(/\w[\w.+-]*)*"))


# ---- names of programs, and their arguments

_TRIPLE = r"([a-z0-9_]+-){2,5}"
_QEMU = "qemu-system-[a-z0-9_]+"
_TOOL = rf"({_TRIPLE})?(gcc|g\+\+|ar|as|ld|objcopy|objdump|size|nm|gdb|clang)|{_QEMU}|clang|openocd|st-flash"
_PROBE = rf"({_TOOL})\ ([-]-version|-fsyntax-only(\ -include\ \w+\.h)*\ -x\ c\ /dev/null)"
_SWITCH = "(on|off|true|false|[0-9]+)"
_MACHINE = r"\w[\w.-]*(,(secure|virtualization|gic-version|highmem|mte|acpi|ras)=[\w.-]+)*"
_CPU = rf"\w[\w.-]*(,([\w.-]+={_SWITCH}|[+-][\w.-]+))*"
_QEMU_ARGS = rf"""(
    -(nic|net|parallel|vga)\ none | -display\ none
  | -m\ (size=)?[0-9]+[KMG]? | -smp\ [0-9]+ | -icount\ (shift=)?(auto|[0-9]+)(,(align|sleep)=(on|off))*
  | -global\ [\w.-]+\.[\w-]+={_SWITCH} | -accel\ tcg(,(thread=(single|multi)|tb-size=[0-9]+))* | -cpu\ {_CPU}
  | -rtc\ (base=(utc|localtime)|clock=(host|vm|rt))(,clock=(host|vm|rt))? | -seed\ [0-9]+
  | -(nodefaults|no-user-config|no-reboot|no-shutdown|no-acpi|no-hpet|singlestep)
)\ """
_OPENOCD = r"""(
    -f\ (interface|target|board|chip|cpu|cpld|fpga|mem|memory|test|tools)(/\w[\w.+-]*)+\.cfg
  | -c\ (transport\tselect\t\w+|adapter\t(speed|serial)\t\w+|reset_config(\t\w+)+|set\t[A-Z_0-9]+\t[0-9a-fA-Fx]+)
  | -d[0-4]?
)\ """
_PACKAGES = (
    r"(gcc|g\+\+|binutils|libc6-dev|libnewlib|libstdc\+\+|picolibc|qemu-system|clang|lld|llvm|openocd|stlink-tools)"
    r"(-[a-z0-9.+-]*[a-z0-9+])?"
)


def _commands(commands: Iterable[Sequence[str]]) -> Any:
    allowed = _pattern(_PROBE)
    return next(
        (list(c) for c in commands if any(" " in w for w in c) or allowed(" ".join(c)) is not None), None
    )


# Platforms of PlatformIO's own that build firmware: any other name in its registry is somebody's Python.
_PLATFORMS = (
    "atmelavr|atmelmegaavr|atmelsam|chipsalliance|espressif32|espressif8266|freescalekinetis|gd32v|infineonxmc|maxim32"
    "|intel_mcs51|kendryte210|lattice_ice40|microchippic32|native|nordicnrf51|nordicnrf52|nuclei|nxpimxrt|nxplpc"
    "|raspberrypi|renesas-ra|riscv_gap|sifive|siliconlabsefm32|ststm32|ststm8|teensy|timsp430|titiva|wiznet7500"
)
_PLATFORMIO = {
    "platform": _pattern(rf"(platformio/)?({_PLATFORMS})( ?@ ?[~^<>=]*[0-9]+(\.[0-9]+)*)?"),
    "board": _pattern(r"\w[\w.-]*"),
    "framework": _pattern("arduino|cmsis|espidf|libopencm3|mbed|spl|stm32cube|zephyr"),
    "boards": lambda names: _each(_pattern(r"\w[\w.-]*"))(names) if isinstance(names, list) else names,
}

_RULES: dict[str, Rule] = {
    "target.cflags": compiler_options,
    "target.ldflags": linker_options,
    "target.support": _pattern(r"\w+|.*/.*"),  # a folder of the user's is checked where its path is known
    "toolchain.prefix": _pattern(f"({_TRIPLE})?"),
    "toolchain.packages": _each(_pattern(_PACKAGES)),
    "toolchain.probes": _commands,
    "qemu.binary": _pattern(_QEMU),
    "qemu.machine": _pattern(_MACHINE),
    "qemu.cpu": _pattern(_CPU),
    "qemu.args": _sequence(_QEMU_ARGS),
    "upload.openocd": _sequence(_OPENOCD),
    **{f"platformio.{key}": rule for key, rule in _PLATFORMIO.items()},
}
