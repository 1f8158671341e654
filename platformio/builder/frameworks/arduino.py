"""Sketches on an emulated board: platformio/arduino has setup, loop and Serial."""

import os

from SCons.Script import DefaultEnvironment

env = DefaultEnvironment()
core = os.path.join(env.PioPlatform().get_dir(), "arduino")
env.Append(CPPPATH=[core], CPPDEFINES=[("ARDUINO", 10819)])
env.Prepend(LIBS=[env.BuildLibrary(os.path.join("$BUILD_DIR", "arduino"), core)])
