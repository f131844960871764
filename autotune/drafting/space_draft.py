"""What is known of a kernel before and after its source was read, and the time that this may take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ARCHITECTURE = "sm_90"  # that is compiled for where no GPU is


@dataclass(frozen=True)
class Limits:
    """Time limits: for reading and for loading, in seconds, and for all together."""

    reading_s: float = 10.0
    total_s: float = 28.0

    @classmethod
    def of(cls, total_s: float) -> Limits:
        """The usual shares of a time for all."""
        return cls(total_s * cls.reading_s / cls.total_s, total_s)


USUAL_LIMITS = Limits()


@dataclass(frozen=True)
class KernelFile:
    """A kernel in a source file that a space is written for."""

    path: Path
    name: str  # that the space gets
    reference: str  # the name of the file for its reference
    entry: str | None = None  # the kernel's name in the source; None takes the first
    include_dirs: tuple[str, ...] = ()  # folders of headers, as the space names them: relative to the source
    definitions: tuple[tuple[str, str], ...] = ()  # macros that the user defines, with their values
    front: str = ""  # the text of the file, if it was written to include the source of another one


@dataclass(frozen=True)
class SpaceDraft:
    """The texts of a space and its reference, with what was found in the source."""

    kernel: KernelFile  # as given, or a file that includes it, with all folders of headers
    dialect: str
    entry: str
    kernels: tuple[str, ...]  # all that the source has
    space: str  # the text of the file
    reference: str  # the text of the file
    has_reference: bool  # it computes something
    tables: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # by kind: texts, and what they are
    arrays: tuple[str, ...]  # the names under which a program passes them
    numbers: tuple[str, ...] = ()  # those of numbers that the space has a value for
    notes: tuple[str, ...] = ()  # what the user should know
    stand_ins: str = ""  # the folder of empty headers that stand in for missing ones
    complaint: str = ""  # what a compiler says against the default, if it was asked


@dataclass(frozen=True)
class Note:
    """A sentence on a space that was written; unless it is good, something is left to do or to know."""

    is_good: bool
    text: str

    def __str__(self) -> str:
        return f"{'good' if self.is_good else 'note'}  {self.text}"
