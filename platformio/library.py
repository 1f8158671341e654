"""The script of library.json: PlatformIO runs it before it compiles, in every build of a project that uses the
library. `env` is the library's environment; additions to CPPPATH and LIBS reach the project."""

import sys

Import("env", "pio_lib_builder")

sys.path.insert(0, f"{pio_lib_builder.path}/platformio")
try:
    import train_library
finally:
    sys.path.pop(0)
train_library.add(env, pio_lib_builder.path)
