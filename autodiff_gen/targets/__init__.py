"""Board profiles, toolchains, firmware builds. Standard library only: SCons imports it in its own Python."""
