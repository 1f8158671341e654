"""A PlatformIO platform for machines that QEMU emulates. The compiler and QEMU are the system's."""

import importlib.metadata
import json
import os
from pathlib import Path

from platformio.dependencies import get_core_dependencies
from platformio.platform.base import PlatformBase

_SCONS = "from SCons.Script.Main import main\n\nmain()\n"


class QemuarmPlatform(PlatformBase):
    """`is_embedded()` decides how `pio test` reads the output: it starts the program itself and reads its stdout, or,
    where the environment's `test_port` is a socket, uploads it (which starts QEMU) and reads the port."""

    def configure_default_packages(self, options, targets):
        self._provide_scons()
        super().configure_default_packages(options, targets)

    def is_embedded(self):
        if not self.project_env:
            return False
        port = self.config.get(f"env:{self.project_env}", "test_port", None)
        return bool(port) and port.startswith("socket://")

    def _provide_scons(self):
        """PlatformIO's package tool-scons, created from pip's SCons where the versions match: no download."""
        try:
            installed = importlib.metadata.version("scons")
        except importlib.metadata.PackageNotFoundError:
            return
        major, minor, patch = (int(part) for part in installed.split(".")[:3])
        version = f"4.{major}{minor:02}{patch:02}.0"
        if get_core_dependencies()["tool-scons"] != f"~{version}":
            return
        folder = Path(self.config.get("platformio", "packages_dir")) / "tool-scons"
        if (folder / ".piopm").is_file():
            return
        spec = {"owner": "platformio", "id": None, "name": "tool-scons", "requirements": None, "uri": None}
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "scons.py", _SCONS)
        _write(folder / "package.json", json.dumps({"name": "tool-scons", "version": version}))
        meta = {"type": "tool", "name": "tool-scons", "version": version, "spec": spec}
        _write(folder / ".piopm", json.dumps(meta))


def _write(path, text):
    """Atomic: another `pio` may be doing the same."""
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)
