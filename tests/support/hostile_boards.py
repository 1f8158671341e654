"""Values of board files that start programs, load code, or read and write files: all need --trust-board.

Each is JSON, which is TOML too. A row of words is a list of options; each option by itself is wrong.
"""

from __future__ import annotations

import json

_OPTIONS = """
    $(touch_canary) `touch_canary` -O2;touch_canary -O2|x -fplugin=/tmp/e.so -fplugin-arg-x-y=1 -wrapper,/tmp/e @/tmp/x
    -B/tmp -specs=/tmp/x --specs=/tmp/x.specs --specs=../x.specs --specs=evil.specs -I/tmp -isystem/tmp -Xlinker
    -save-temps -save-temps=obj -o/tmp/x -dumpdir -dumpbase -fdump-tree-all -fdump-rtl-all=/tmp/x -fprofile-use
    -fprofile-generate=/tmp -fprofile-dir=/tmp -MMD -MD -MF/tmp/x -fmodule-mapper=|touch -fpass-plugin=/tmp/x.so
    -Wp,-MD,/tmp/x -Wa,-al=/tmp/x -Wl,-plugin,/tmp/x.so -Wl,--plugin=/tmp/x.so -Wl,--defsym=puts=system
    -Wl,--wrap=puts -Wl,-T,/tmp/x -T/tmp/x -Wl,@/tmp/x -Wl,-rpath,/tmp -Wl,-rpath=/tmp -Wl,--dynamic-linker=/tmp/x
    -Wl,-Map=/tmp/x -Wl,-o,/tmp/x -Wl,--gc-sections,-o,/tmp/x -Wl,--dependency-file=/tmp/x -Wl,--script=/tmp/x
    -Wl,--audit=/tmp/x.so -Wl,-init,system -Wl,-fini=system -Wl,--section-start=.x=/tmp -Wl, -Wl,-L/tmp -L/tmp
    -l:/tmp/x.a -l/tmp/x /tmp/x.o x.a a.c -DX=system("x") -Dputs=system -Dmain=evil -DX(a)=b -DX=$(x) -DX=a;b
    -DX=${__import__('os').system('x')} - -- -### --sysroot=/tmp -iplugindir=/tmp -ftest-coverage --coverage
    -fstack-usage -fcallgraph-info -gsplit-dwarf -fuse-ld=/tmp/x -fuse-ld=evil -E -S -fsave-optimization-record
    -fopt-info-all=/tmp/x -fdiagnostics-format=sarif-file -foffload=x -fauto-profile=/tmp/x -fcompare-debug
    -fsanitize-ignorelist=/tmp/x -mcpu=$(x) -mcpu=a;b -march=/tmp -Wno-x=/tmp/x -f -shared -u
"""
_PAIRS = """
    -wrapper /tmp/e | -B /tmp | -I /tmp | -isystem /tmp | -isysroot /tmp | -include /etc/passwd | -imacros /etc/passwd
    -x c++ | -Xlinker -o | -Xassembler x | -Xpreprocessor x | -o /tmp/x | -MF /tmp/x | -D X | -U X | -mllvm -load=/tmp/x
    -Xclang -load | -no-integrated-cpp -B. | --param x=/tmp | -T /tmp/x.ld | -u -o | -Wl,--gc-sections /tmp/x
"""
_QEMU = """
    -drive file=/tmp/x | -chardev file,path=/tmp/x | -device loader,file=/tmp/x | -plugin /tmp/x.so | -gdb tcp::1
    -serial file:/tmp/x | -monitor tcp::1,server | -D /tmp/x | -d in_asm | -nic user | -nic tap,script=/tmp/x
    -netdev tap,script=x | -bios /tmp/x | -kernel /tmp/x | -pidfile /tmp/x | -readconfig /tmp/x | -L /tmp
    -icount shift=1,rr=record,rrfile=/tmp/x | -global x.y=/tmp | -fsdev local,path=/ | -virtfs local
    -incoming exec:touch | -object x | -semihosting-config arg=x | -append x | -dtb x | -trace file=x | -qmp x
    -daemonize | -s | -S | -sd /tmp/x | -cpu x,y=/z | -perfmap | -audiodev wav,path=/tmp/x,id=a | -nic | -m 1G;x | x
"""
_OPENOCD = """
    -f /tmp/x.cfg | -f ../x.cfg | -f x.cfg | -f interface/../../x.cfg | -f interface/x | -s /tmp | -l /tmp/x | -f
    -c shutdown | --search /tmp | -p x
"""


def _rows(text: str) -> list[list[str]]:
    return [row.split() for line in text.splitlines() for row in line.split(" | ") if row.strip()]


OPTIONS = [
    *([word] for word in _OPTIONS.split()),
    *_rows(_PAIRS),
    ["-O2\ntouch x"],
    ["-O2 -o x"],
    ["-DX=a b"],
    [""],
]
_TCL = (
    "exec touch x",
    "adapter speed 1; exec touch x",
    "adapter speed [exec touch x]",
    "set A $x",
    "set A [exec x]",
)

VALUES = {
    "target.cflags": OPTIONS,
    "target.ldflags": OPTIONS,
    "target.support": ["/tmp/", "../x", "./a/../../x", "..", "$(x)", "a b"],
    "toolchain.prefix": [
        *("/tmp/evil-", "./x-", "../x-", "sh -c ", "evil", "a-", "$(x)-y-", "${x}-y-", "arm-none-eabi-;x-", "~/x-"),
        *("-x-y-", "arm-none-eabi-gcc\n", "x\0-y-", " arm-none-eabi-"),
    ],
    "toolchain.probes": [
        [row]
        for row in (
            *(["touch", "canary"], ["sh", "-c", "touch x"], ["/bin/gcc", "--version"], ["./gcc", "--version"]),
            *(["gcc", "-fplugin=x", "--version"], ["gcc"], ["gcc --version"], ["python3", "--version"]),
            *(["gcc", "--version", "x"], ["gcc", "-x", "c", "-o", "x", "/dev/null"], ["evil-gcc", "--version"]),
            ["gcc", "-fsyntax-only", "-include", "/etc/passwd", "-x", "c", "/dev/null"],
        )
    ],
    "toolchain.packages": [
        [word] for word in ("telnetd", "gcc-", "-o", "gcc/unstable", "gcc=1", "./x.deb", "*", "$(x)", "gcc;x", "gcc x")
    ],
    "qemu.binary": ["touch", "/tmp/qemu-system-arm", "./qemu-system-arm", "qemu-img", "qemu-system-arm;x", "sh"],
    "qemu.machine": ["virt,dumpdtb=/tmp/x", "virt,firmware=/tmp/x", "virt -plugin x", "virt;x", "-plugin", "$(x)"],
    "qemu.cpu": ["x -plugin y", "x,y=/tmp", "$(x)", "x;y", "../x", "-plugin"],
    "qemu.args": [*_rows(_QEMU), ["-m 1G"], [""]],
    "upload.openocd": [*_rows(_OPENOCD), *(["-c", text] for text in _TCL)],
    "platformio.platform": [
        *("https://github.com/x/y.git", "file:///tmp/x", "symlink:///tmp/x", "evil", "evil/ststm32", "../x"),
        *("ststm32 @ https://x", "ststm32\nextra_scripts = x.py", "${sysenv.HOME}", 3),
    ],
    "platformio.board": ["x\nextra_scripts = pre:x.py", "../x", "${sysenv.X}", "a b", ""],
    "platformio.framework": ["arduino\nx=y", "evil", "${x}"],
    "platformio.boards": [["../x"], "x", [3], ["a\nb"]],
    **{f"platformio.{key}": ["x.py"] for key in ("extra_scripts", "build_flags", "upload_command", "lib_deps")},
}  # fmt: skip
_BESIDE = {"qemu.machine": "", "qemu": 'machine = "x"\n', "upload": "address = 0\n"}


def files() -> list[tuple[str, str, str]]:
    """(key, value, text of a board file that has it), of the host and of a board."""
    found = []
    for key, values in VALUES.items():
        section, _, name = key.rpartition(".")
        beside = _BESIDE.get(key, _BESIDE.get(section, ""))
        for value in map(json.dumps, values):
            for base in ("host", "stm32"):
                head = f'schema = 1\nname = "evil"\ninherits = "{base}"\n'
                found.append((key, value, f"{head}[{section}]\n{beside}{name} = {value}\n"))
    return found
