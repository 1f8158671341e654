"""Every C identifier is made here: valid, not reserved, and unique in its scope."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Iterable

_KEYWORDS = """
         auto break case char const continue default do double else enum extern float for goto if inline int
    long register     restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while     alignas alignof and and_eq asm atomic_cancel atomic_commit bitand bitor bool catch
    char16_t char32_t char8_t class co_await     co_return co_yield compl concept const_cast consteval
    constexpr constinit decltype default delete dynamic_cast explicit export     false friend mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public     reinterpret_cast
    requires static_assert static_cast template this thread_local throw true try typeid typename using
    virtual wchar_t xor xor_eq main NULL NAN INFINITY EOF I errno complex imaginary linux unix typeof
"""
KEYWORDS = frozenset(_KEYWORDS.split())

# Names that generated functions use for themselves, and functions and macros of the C library (all of C99's <math.h>),
# which no local may hide and no function may define again.
_OURS = "t n lr i j k l p q r s ctx before_arena arena int_arena seed status read write header"
OURS = frozenset(_OURS.split())
_LIBRARY = """
    abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh div drem erf erfc exp exp10 exp2
    expm1 fabs fdim finite floor fma fmax fmin fmod fpclassify free frexp gamma hypot ilogb index isfinite
    isgreater isgreaterequal isinf isless islessequal islessgreater isnan isnormal isunordered j0 j1 jn ldexp
    lgamma llrint llround log log10 log1p log2 logb lrint lround malloc memcpy memset modf nan nearbyint
    nextafter nexttoward pow pow10 printf puts rand remainder remquo rint round scalbln scalbn scanf select
    signal signbit significand sin sincos sinh sqrt stderr stdin stdout tan tanh tgamma time trunc y0 y1 yn
"""
LIBRARY = frozenset(_LIBRARY.split()) | {f"{name}f" for name in _LIBRARY.split()}
_TYPES = "int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t size_t ptrdiff_t float_t double_t"
TYPES = frozenset(_TYPES.split())

_HEADERS = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdarg stdbool stddef stdint
    stdio stdlib string tgmath time wchar wctype
    alloca arduino fcntl malloc newlib pthread reent sched stdalign stdatomic stdnoreturn strings threads unistd
"""
HEADERS = frozenset(_HEADERS.split())  # of C, and what its headers and Arduino's include

# Who defines <NAME>_OK, in whose name no program may define it.
OK_OF = {
    **dict.fromkeys("frwx", "<unistd.h>"),
    "esp": "ESP-IDF",
    "hal": "STM32's HAL",
    "pico": "the Pico SDK",
}

# Macros with small letters that a compiler replaces wherever they occur. A macro with arguments is none of them: it is
# replaced only before a parenthesis, where no array is.
_MACROS = """
         linux unix i386
    fd_set noreturn physadr quad sa_handler sa_sigaction signgam stderr stdin stdout strtodf tzname
    Serial Serial1 Serial2 Serial3 SerialUSB
"""  # predefined by gcc and clang; newlib and glibc; cores of Arduino (SAMD, mbed, ESP32)
MACROS = frozenset(_MACROS.split())

# Macros and functions of every program, less its own name and the underscore.
_PROGRAM = """
    OK ERR_NULL ERR_BATCH ERR_LABEL ERR_IO ERR_CHECKPOINT ERR_INPUT ERR_LOSS ERR_BUSY ERR_GRADIENTS ERR_ALIGNMENT
    ERR_PROGRAM ERR_FORMAT MORE PARTS PARTS_TO_ABORT BATCH GRAPH_ID PROGRAM DEFAULT_LR STATE_BYTES TRAINER_BYTES
    WORK_BYTES H init save load load_any load_of strstatus train_part abort trainer work size_is_as_planned
"""


def is_identifier(name: str) -> bool:
    """Whether `name` is an identifier of C as it is, and none that C reserves."""
    made = isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None
    return made and name not in KEYWORDS and not is_reserved(name)


def is_reserved(name: str) -> bool:
    """Whether C leaves it to compilers and libraries: `_B` is a macro of newlib's <ctype.h>, `INT32_MAX` one of
    <stdint.h>."""
    return (
        re.match(r"_[A-Z_]|(U?INT\w*|SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC)_(MIN|MAX|WIDTH|C)$", name)
        is not None
    )


def may_be_macro(name: str) -> bool:
    """Whether a header of a platform may define it: a name in capitals, as registers (`GPIOA`), pins (`B1`, `A0`) and
    constants (`PI`, `M_PI`, `INPUT`) are called in Arduino.h, CMSIS, ESP-IDF and <math.h>; or one of MACROS. None ends
    with _."""
    return re.fullmatch(r"[A-Z][A-Z0-9_]*(?<!_)", name) is not None or name in MACROS


def identifier(name: str) -> str:
    """A C identifier for a name of the model: `fc1.weight` -> `fc1_weight`, `0.weight` -> `layer0_weight`,
    `_B` -> `layer_B`."""
    text = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not text or text[0].isdigit() or is_reserved(text):
        text = f"layer{text}"
    return f"{text}_" if text in KEYWORDS else text


def numbered(name: str, number: int) -> str:
    """`sum_2`, and `fc1_out_2`."""
    return f"{name}_{number}"


def unused(wanted: str, *taken: Container[str]) -> str:
    """`wanted`, or with the lowest number after it that is free: in none of `taken`."""
    names = itertools.chain([wanted], (numbered(wanted, k) for k in itertools.count(2)))
    return next(name for name in names if not any(name in used for used in taken))


def of_program(name: str) -> set[str]:
    """The identifiers that the files of the program `name` define in addition to its entries."""
    words = _PROGRAM.split()
    return {name, *(f"{name.upper() if w.isupper() else name}_{w}" for w in words)}


class Scope:
    """Hands out identifiers, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken) | OURS | LIBRARY | TYPES | KEYWORDS
        self._last: dict[str, int] = {}  # the highest number that each base has got

    def fresh(self, wanted: str) -> str:
        """`wanted` as an identifier, with _ if it may be a macro, or with the lowest free number after it; the prefix
        ag_ is the kernels'."""
        base = identifier(wanted)
        base = f"{base}_" if may_be_macro(base) else base
        base = f"x_{base}" if base.lower().startswith("ag_") else base
        name, k = base, self._last.get(base, 1)
        while name in self.taken:
            k += 1
            name = numbered(base, k)
        self._last[base] = k
        self.taken.add(name)
        return name
