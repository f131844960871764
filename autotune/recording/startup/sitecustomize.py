"""Runs first in every Python of a program under `autotune record`, before the environment's own such file."""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

_own = Path(__file__).parent
_other = PathFinder.find_spec(
    "sitecustomize", [folder for folder in sys.path if Path(folder or ".").resolve() != _own]
)
_recorded = os.environ.get("AUTOTUNE_RECORD")
if _recorded:
    from autotune.recording.recorder import RecordWhenImported

    sys.meta_path.insert(0, RecordWhenImported(Path(_recorded)))
if _other is not None and _other.loader is not None:
    _other.loader.exec_module(module_from_spec(_other))
