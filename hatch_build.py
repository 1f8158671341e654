"""Keeps files that Git does not track out of wheels and source distributions that are built from a checkout."""

from __future__ import annotations

import subprocess
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TrackedFilesOnly(BuildHookInterface):
    """Without Git, as in a source distribution, every file is there on purpose."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        words = [
            "git",
            "-c",
            f"safe.directory={self.root}",
            "ls-files",
            "-z",
            "--others",
            "--exclude-standard",
        ]
        try:
            listed = subprocess.run(words, cwd=self.root, capture_output=True, check=True).stdout.decode()
        except (OSError, subprocess.CalledProcessError):
            return
        untracked = [f"/{name}" for name in listed.split("\0") if name]
        target = self.build_config.target_config
        target["exclude"] = [*target.get("exclude", []), *untracked]
