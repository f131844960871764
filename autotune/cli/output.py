"""Print a command's result."""

from __future__ import annotations

import json
from typing import Any


def emit(result: Any) -> None:
    """Print a text as it is, and anything else as JSON."""
    print(result if isinstance(result, str) else json.dumps(result, indent=2, default=str))
