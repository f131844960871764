"""The control groups of this process, which limit the cores and the memory of a container (Linux)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def group_folders(controller: str, groups: Path = GROUPS, own: Path = OWN) -> Iterator[tuple[Path, int]]:
    """The folders of the process's group and its parents, with the version of their files.

    Groups outside a container are not visible in it: a folder may not exist.

    Args:
        controller: Such as "cpu" or "memory".
        groups: Where the groups are.
        own: The file that names those of the process.
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
            yield folder, 1 if controllers else 2
            folder = folder.parent
