"""Where a command's result goes."""

from __future__ import annotations

import json
from typing import Any


def emit(what: Any) -> None:
    """Print text as it is, and anything else as JSON."""
    print(what if isinstance(what, str) else json.dumps(what, indent=2, default=str))
