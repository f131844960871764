"""Processes that a benchmark times find modules compiled, as those of an installed package are."""

from __future__ import annotations

import compileall
import os
from pathlib import Path

ROOT = Path(__file__).parents[1]


def installed_environment(checkout: Path = ROOT) -> dict[str, str]:
    """Compile the modules of a checkout, and return variables with which no process compiles them again."""
    compileall.compile_dir(checkout / "autotune", quiet=2)
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
