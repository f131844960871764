"""What is known of a kernel before and after its source was read; it travels between processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ARCHITECTURE = "sm_90"  # that is compiled for where no GPU is


@dataclass(frozen=True)
class KernelFile:
    """A kernel in a source file that a space is written for.

    Attributes:
        path: The source.
        name: That the space gets.
        reference: The name of the file for its reference.
        entry: The kernel's name in the source; None takes the first.
        include_dirs: Folders of headers, as the space names them: relative to the source.
        definitions: Macros that the user defines, with their values.
        front: The text of the file, if it was written to include the source of another one.
    """

    path: Path
    name: str
    reference: str
    entry: str | None = None
    include_dirs: tuple[str, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()
    front: str = ""


@dataclass(frozen=True)
class SpaceDraft:
    """The texts of a space and its reference, with what was found in the source.

    Attributes:
        kernel: What it is for: the kernel's file, or one that was written to include it, with all folders of
            headers.
        dialect: The source's.
        entry: The kernel that the space is for.
        kernels: All that the source has.
        space: The text of the space file.
        reference: The text of the reference.
        has_reference: Whether the reference computes something.
        tables: What was found, by kind: for each argument or macro its text and what it was taken for.
        arrays: The names under which a program passes the arrays.
        notes: What the user should know.
        stand_ins: The folder of empty headers that stand in for missing ones; empty without any.
        complaint: What a compiler says against the default; empty if it says nothing or was not asked.
    """

    kernel: KernelFile
    dialect: str
    entry: str
    kernels: tuple[str, ...]
    space: str
    reference: str
    has_reference: bool
    tables: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    arrays: tuple[str, ...]
    notes: tuple[str, ...] = ()
    stand_ins: str = ""
    complaint: str = ""


@dataclass(frozen=True)
class Note:
    """A sentence on a space that was written; unless it is good, something is left to do or to know."""

    is_good: bool
    text: str

    def __str__(self) -> str:
        return f"{'good' if self.is_good else 'note'}  {self.text}"
