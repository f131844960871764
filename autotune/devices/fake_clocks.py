"""The clocks of the fake device, in a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from autotune.errors import LaunchError
from autotune.processes.files import replace_file


class FakeControl:
    """Settings in the JSON file that AUTOTUNE_FAKE_CLOCKS names: `{"sm_clock_mhz": 0, "power_limit_w": 300}`.

    If the file has `"refuses": true`, nothing may be set.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.address = ("fake", str(path.absolute()))

    def read(self, name: str) -> float:
        """Read the file."""
        return float(json.loads(self._path.read_text())[name])

    def allowed(self, name: str) -> Sequence[int]:
        """300 to 1500 MHz in steps of 15, and 100 to 300 W."""
        return range(300, 1501, 15) if name == "sm_clock_mhz" else range(100, 301)

    def set(self, name: str, value: float) -> None:
        """Change the file."""
        state = json.loads(self._path.read_text())
        if state.get("refuses"):
            raise LaunchError(f"{name} cannot be set: the fake device refuses it")
        replace_file(self._path, json.dumps({**state, name: value}))
