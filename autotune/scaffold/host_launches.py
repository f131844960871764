"""Read from a program's host code how it launches a kernel: template arguments and blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from autotune.scaffold.brackets import closing, split_arguments


@dataclass(frozen=True)
class HostLaunch:
    """Template arguments and threads of a block along each axis, as the host writes them."""

    template: tuple[str, ...]
    block: tuple[str, ...]


def host_launches(kernel: str, host: str) -> list[HostLaunch]:
    """The launches `kernel<...><<<grid, block>>>(...)` of a kernel."""
    found = []
    for match in re.finditer(rf"\b{kernel}\s*(?:<([^;{{}}]*?)>)?\s*<<<", host):
        end = host.find(">>>", match.end())
        configuration = split_arguments(host[match.end() : end])
        if end > 0 and len(configuration) > 1:
            block = (*_extents(configuration[1], host), "1", "1")[:3]
            found.append(HostLaunch(split_arguments(match[1] or ""), block))
    return found


def _extents(block: str, host: str) -> tuple[str, ...]:
    """The extents that a dim3 is given, whether it has a name or not."""
    declared = re.search(rf"\bdim3\s+(?:\w+\s*\([^;]*\)\s*,\s*)*{re.escape(block)}\s*[({{]", host)
    text, start = (host, declared.end() - 1) if declared else (block, block.find("("))
    if declared or re.match(r"dim3\s*\(", block):
        return split_arguments(text[start + 1 : closing(text, start)])
    return (block,)
