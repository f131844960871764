"""What is assumed where a source does not say it; compiling and running tell whether it holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of a source.

    Attributes:
        undefined: Words that a compiler does not know: macros or types that the source leaves to its user.
        defined: Macros that the user defines, with their values.
        generic: The type that an instance of a template gets.
        is_small: The default takes few resources: the least of every parameter's values.
        is_roomy: Arrays need more room than their indices show; sizes are smaller then, and indices 0.
    """

    undefined: tuple[str, ...] = ()
    defined: tuple[tuple[str, str], ...] = ()
    generic: str = "DTYPE"
    is_small: bool = False
    is_roomy: bool = False


USUAL = Assumptions()
