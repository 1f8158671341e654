"""The kernel contract, read from `kernels/ag_kernels.h` and `kernels/ag_shapes.h`: names, parameters in order, declared
symbols. Stdlib only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import KernelError
from ..targets import installation

HEADER, SHAPES = "ag_kernels.h", "ag_shapes.h"
NUMBERS = ("int32_t", "float")
ARRAYS = ("float *", "uint8_t *", "int8_t *", "int32_t *")  # const: the kernel only reads it
MAX = "max_"  # with the name of a size: the size with a full batch
SCRATCH = "scratch"  # the parameter `void *scratch`: memory for the kernel while it runs; it may be NULL
EPILOGUE = "const ag_epilogue *"  # operations on each result before it is stored; it may be NULL

# The functions of ag_math.h that a backend may replace: ag_<name>, float to float.
FUNCTIONS = ("cosf", "erff", "expf", "expm1f", "log1pf", "logf", "sigmoidf", "sinf", "tanhf")

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(r"^#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_MACRO = re.compile(r"#define AG_KERNEL\(name\)((?:[^\n]*\\\n)*[^\n]*)")


@dataclass(frozen=True)
class KernelParam:
    """One C parameter. A `const` pointer to elements is read; another pointer to elements is written (and read if beta
    != 0). Other parameters are numbers, a struct of geometry, an epilogue, or scratch memory.
    """

    name: str
    ctype: str

    @property
    def struct(self) -> str | None:
        """The struct of STRUCTS that it points to, if any."""
        name = self.ctype.removeprefix("const ag_").removesuffix(" *")
        return name if name in STRUCTS else None

    @property
    def is_epilogue(self) -> bool:
        return self.ctype == EPILOGUE

    @property
    def is_pointer(self) -> bool:
        """Whether it points to elements."""
        return self.ctype.removeprefix("const ") in ARRAYS

    @property
    def is_scratch(self) -> bool:
        return self.name == SCRATCH and self.ctype == "void *"


@dataclass(frozen=True)
class KernelSpec:
    """One kernel of the contract, such as `gemv_f32`. Arrays are row-major, sizes are int32_t, geometry is in a
    struct."""

    name: str
    params: tuple[KernelParam, ...]

    @property
    def type_name(self) -> str:
        """The C function type: `ag_gemv_f32_fn my_gemv;` declares the kernel of a user's backend."""
        return f"ag_{self.name}_fn"

    @property
    def param_names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.params)

    @property
    def facts(self) -> tuple[str, ...]:
        """The numbers of a call: the numeric parameters, the geometry, `epilogue`, 1 if the call has one, and `align`,
        the alignment of all arrays in bytes."""
        names: list[str] = []
        for p in self.params:
            names += STRUCTS[p.struct] if p.struct else [] if p.is_pointer or p.is_scratch else [p.name]
        return (*names, "align")

    @property
    def attributes(self) -> tuple[str, ...]:
        """The call attributes that a table's condition may compare: `facts`, and max_<size>, the maximum of each size
        that may vary at run time."""
        return (*self.facts, *(f"{MAX}{p.name}" for p in self.params if p.ctype == "int32_t"))

    @property
    def output(self) -> str:
        """The first parameter that the kernel writes."""
        return next(p.name for p in self.params if p.is_pointer and not p.ctype.startswith("const"))


def read_structs(text: str) -> dict[str, tuple[str, ...]]:
    """The structs of ag_shapes.h: geometry that is constant over calls, each field an int32_t."""
    found = {}
    for body, name in re.findall(r"typedef struct \{(.*?)\} ag_(\w+);", _COMMENT.sub("", text), re.DOTALL):
        lines = [" ".join(line.split()) for line in body.split(";") if line.strip()]
        if not all(line.startswith("int32_t ") for line in lines):
            continue  # the struct of epilogues
        found[name] = tuple(f for line in lines for f in line.removeprefix("int32_t ").split(", "))
    return found


def read_contract(text: str) -> tuple[dict[str, KernelSpec], frozenset[str]]:
    """The kernels of ag_kernels.h, in order, and the symbols that it declares. Raises KernelError."""
    macro = _MACRO.search(text)
    if macro is None:
        raise KernelError(f"{HEADER}: no macro AG_KERNEL(name), which declares the symbols of a kernel")
    suffixes = [s for s in re.findall(r"\bag_##name##_(\w+)", macro[1]) if s != "fn"]
    types: dict[str, tuple[KernelParam, ...]] = {}
    kernels: dict[str, KernelSpec] = {}
    declared: set[str] = set()
    for words in _statements(text):
        if match := re.fullmatch(r"typedef void (\w+)\((.*)\)", words):
            types[match[1]] = tuple(_param(p.strip(), words) for p in match[2].split(","))
        elif match := re.fullmatch(r"typedef (\w+) (.*)", words):
            types.update(dict.fromkeys(match[2].split(", "), types[match[1]]))
        elif (match := re.fullmatch(r"AG_KERNEL\((\w+)\)", words)) and f"ag_{match[1]}_fn" in types:
            kernels[match[1]] = KernelSpec(match[1], types[f"ag_{match[1]}_fn"])
            declared.update(f"ag_{match[1]}_{suffix}" for suffix in suffixes)
        elif (match := re.fullmatch(r"(ag_\w+_fn) (\w+)", words)) and match[1] in types:
            declared.add(match[2])
        else:
            raise KernelError(f"{HEADER}: neither a function type nor the declaration of a kernel: {words}")
    return kernels, frozenset(declared)


def _statements(text: str) -> Iterator[str]:
    code = _DIRECTIVE.sub("", _COMMENT.sub("", text)).replace('extern "C" {', "").replace("}", "")
    return (words for part in code.split(";") if (words := " ".join(part.split())))


def _param(text: str, statement: str) -> KernelParam:
    match = re.fullmatch(r"(.*?) ?(\w+)", text)
    assert match is not None
    kind = match[1].removeprefix("const ")
    if (
        match[1] != EPILOGUE
        and (match[1], match[2]) != ("void *", SCRATCH)
        and kind not in (*NUMBERS, *ARRAYS)
        and kind.removeprefix("ag_").removesuffix(" *") not in STRUCTS
    ):
        raise KernelError(
            f"{HEADER}: {text!r} is neither a number, an array nor a struct of {SHAPES}: {statement}"
        )
    return KernelParam(match[2], match[1])


def _header(name: str) -> str:
    return (installation.kernels() / name).read_text(encoding="utf-8")


STRUCTS = read_structs(_header(SHAPES))
CONTRACT, DECLARED = read_contract(_header(HEADER))
