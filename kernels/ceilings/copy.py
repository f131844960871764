"""Reference of the copying kernel."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray


def reference(inputs: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """The same numbers."""
    return {"result": inputs["numbers"]}
