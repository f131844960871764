"""The control groups of this process, which limit the cores and the memory of a container (Linux)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def group_limits(
    controller: str, files: Mapping[int, Sequence[str]], groups: Path = GROUPS, own: Path = OWN
) -> Iterator[list[str]]:
    """The words in files of the process's group and of its parents.

    Groups outside a container are not visible in it, and the root has no limits: files may not exist.

    Args:
        controller: Such as "cpu" or "memory".
        files: The names of the files, by version of control groups.
        groups: Where the groups are.
        own: The file that names the groups of the process.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for _, controllers, place in (line.split(":", 2) for line in lines):
        if controllers and controller not in controllers.split(","):
            continue
        folder = groups / (controller if controllers else "") / place.strip("/")
        while folder.is_relative_to(groups):
            with suppress(OSError):
                yield " ".join((folder / name).read_text() for name in files[1 if controllers else 2]).split()
            folder = folder.parent
