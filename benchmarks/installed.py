"""Processes that a benchmark times find modules compiled, as those of an installed package are."""

from __future__ import annotations

import compileall
import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


def installed_environment(checkout: Path = ROOT) -> dict[str, str]:
    """Compile the modules of a checkout, and return variables with which no process compiles them again."""
    _compile(checkout)
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@cache  # a benchmark asks before each of many processes
def _compile(checkout: Path) -> None:
    compileall.compile_dir(checkout / "autotune", quiet=2)
