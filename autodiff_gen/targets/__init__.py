"""Board profiles, toolchains and build commands. Standard library only: SCons imports it in its own Python."""
