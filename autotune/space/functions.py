"""Python functions that a caller gives in place of parts of a space file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from autotune.core.records import Config

Values = Mapping[str, Any]  # what an expression may read: sizes, parameters, DTYPE and so on


@dataclass(frozen=True)
class Functions:
    """The parts of a space that are functions; they run in the process that started the search.

    Args:
        reference: As in a reference file: takes inputs and sizes, returns outputs by name.
        inputs: As in a reference file: takes sizes, a random generator and the name of the data, if any.
        hashes: The hash of the content of each array that `inputs` returns, where it is known.
        constraints: Conditions that every valid configuration satisfies.
        values: Functions that compute further names for the launch plan.
        source: Gives the complete source of a configuration.
        verify: Takes a configuration and arrays by name as a run leaves them; says whether they are right.
        verified: The arrays that it takes; None for all.
    """

    reference: Callable[..., Mapping[str, Any]] | None = None
    inputs: Callable[..., Mapping[str, Any]] | None = None
    hashes: Mapping[str, str] = field(default_factory=dict)
    constraints: tuple[Callable[[Values], Any], ...] = ()
    values: Mapping[str, Callable[[Values], int]] = field(default_factory=dict)
    source: Callable[[Config], str] | None = None
    verify: Callable[[Config, Mapping[str, NDArray[Any]]], Any] | None = None
    verified: tuple[str, ...] | None = None


def function_name(function: Callable[..., Any]) -> str:
    """A function's name in messages."""
    return getattr(function, "__qualname__", type(function).__name__)
