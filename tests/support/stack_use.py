"""The most stack that Arm functions need with all that they call, from object code compiled with -ffunction-sections:
the bytes by which each lowers the stack pointer, and the functions that its relocations name. A call through a pointer
may be of any function whose address the same file takes."""

import re
import subprocess
from collections import defaultdict

_FILE = re.compile(r"^\S.*:\s+file format ")
_SYMBOL = re.compile(r"^([0-9a-f]{8}) .{7} (\S+)\t[0-9a-f]{8} (?:\.hidden )?(\S+)$")
_SECTION = re.compile(r"^Disassembly of section (\S+):$")
_FUNCTION = re.compile(r"^([0-9a-f]{8}) <([^>]+)>:$")
_PUSH = re.compile(r"\t(?:v?push|v?stmdb)\S*\t(?:sp!, )?\{(.+)\}")
_LOWERED = re.compile(r"\tsub\S*\tsp, (?:sp, )?#(\d+)|\tv?str\S*\t.*\[sp, #-(\d+)\]!")
_VARIABLE = re.compile(r"\t(?:add|sub|mov)\S*\tsp, (?:sp, )?(?!sp)[a-z]")
_CALL = re.compile(r"\tb\S*\t[0-9a-f]+ <([^>+]+)>| R_ARM_THM_(?:CALL|JUMP\d+)\t(\S+)")
_ADDRESS = re.compile(r" R_ARM_(?:ABS32|REL32|THM_MOVW_ABS_NC)\t(?:\.text\.)?(\S+)")
_POINTER = re.compile(r"\tblx?\S*\tr\d|\tbx\S*\tr\d")


class StackUse:
    """Of the functions of some objects; a function is (file, name), as several files may have one of the same name."""

    def __init__(self, objdump, objects):
        command = [objdump, "-tdr", "--no-show-raw-insn", *map(str, objects)]
        self.frames, self.calls, self.exported, self._deepest = {}, defaultdict(set), {}, {}
        self._read(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        named = {name for called in self.calls.values() for _, name in called}
        self.missing = named - set(self.exported)  # functions that are called, and that no object has

    def deepest(self, name):
        """Bytes, and the functions of the deepest chain of calls with the bytes of each."""
        return self._visit(self.exported[name], ())

    def _visit(self, function, callers):
        if function not in self._deepest:
            assert function not in callers, f"{function[1]} is recursive"
            callees = [c if c in self.frames else self.exported.get(c[1]) for c in self.calls[function]]
            chains = [
                self._visit(c, (*callers, function)) for c in callees if c is not None and c != function
            ]
            below, chain = max(chains, default=(0, ()))
            frame = self.frames[function]
            self._deepest[function] = frame + below, (f"{function[1]} {frame}", *chain)
        return self._deepest[function]

    def _read(self, text):
        taken, through, names = defaultdict(set), set(), defaultdict(set)
        file = section = function = None
        for line in text.splitlines():
            if _FILE.match(line):
                file = line
            elif found := _SYMBOL.match(line):
                names[file, found[2], found[1]].add(found[3])
            elif found := _SECTION.match(line):
                section = found[1]
            elif found := _FUNCTION.match(line):
                function = file, found[2]
                self.frames[function] = 0
                self.exported |= dict.fromkeys(names[file, section, found[1]], function)
            elif found := _PUSH.search(line):
                self.frames[function] += _bytes(found[1])
            elif found := _LOWERED.search(line):
                self.frames[function] += int(found[1] or found[2])
            elif found := _CALL.search(line):
                self.calls[function].add((file, found[1] or found[2]))
            elif found := _ADDRESS.search(line):
                taken[file].add((file, found[1]))
            elif _POINTER.search(line):
                through.add(function)
            assert not _VARIABLE.search(line), f"{function[1]}: the size of its frame varies: {line}"
        for function in through:
            self.calls[function] |= {f for f in taken[function[0]] if f[1] in self.exported}


def _bytes(registers):
    """Of a list of registers as objdump prints it: {r4, r5, lr}, {d8-d15}."""
    count = 0
    for part in registers.split(", "):
        first, _, last = part.partition("-")
        count += (int(last[1:]) - int(first[1:]) + 1 if last else 1) * (8 if part[0] == "d" else 4)
    return count
