"""Processes that a benchmark times find modules compiled, as those of an installed package are."""

from __future__ import annotations

import compileall
import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


def installed_environment(checkout: Path = ROOT) -> dict[str, str]:
    """Compile the modules of a checkout, and return variables with which a process finds them so."""
    _compile(checkout)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    places = (str(checkout), os.environ.get("PYTHONPATH", ""))
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, places))}


@cache  # a benchmark asks before each of many processes
def _compile(checkout: Path) -> None:
    compileall.compile_dir(checkout / "autotune", quiet=2)
