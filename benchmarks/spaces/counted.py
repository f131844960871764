"""Stands in for the references of spaces that are counted, not run."""

from collections.abc import Mapping
from typing import Any


def reference(inputs: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return no result: nothing here is ever run."""
    return {}
