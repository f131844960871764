"""Read from a program's host code how it launches a kernel: template arguments, grid and block."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.core.brackets import closing, split_arguments


@dataclass(frozen=True)
class HostLaunch:
    """Template arguments, extents of the grid and the block, and arguments, as the host writes them.

    `variables` are what the host's variables were set to last before the launch, `code` is all of its text.
    A template argument that the launching function's own template declares is its default there.
    """

    template: tuple[str, ...]
    grid: tuple[str, ...]
    block: tuple[str, ...]
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    code: str


def host_launches(kernel: str, host: str) -> list[HostLaunch]:
    """The launches `kernel<...><<<grid, block>>>(...)` of a kernel."""
    found = []
    for match in re.finditer(rf"\b{kernel}\s*(?:<([^;{{}}]*?)>)?\s*<<<", host):
        end = host.find(">>>", match.end())
        configuration = split_arguments(host[match.end() : end])
        if end > 0 and len(configuration) > 1:
            grid, block = ((*_extents(text, host), "1", "1")[:3] for text in configuration[:2])
            opening = host.find("(", end)
            arguments = split_arguments(host[opening + 1 : closing(host, opening)]) if opening > 0 else ()
            variables, defaults = _variables(host[: match.start()]), _defaults(host[: match.start()])
            given = split_arguments(match[1] or "")
            template = tuple(item if item in variables else defaults.get(item, item) for item in given)
            found.append(HostLaunch(template, grid, block, arguments, variables, host))
    return found


def _defaults(before: str) -> dict[str, str]:
    """The defaults of the template of the function that launches, in whose body the text ends."""
    found = re.finditer(r"\btemplate\s*<([^;{}]*)>[^;{}<>]*\{", before)
    lists = [match[1] for match in found if closing(before, match.end() - 1, "{}") == len(before)]
    declared = [part.partition("=") for part in split_arguments(lists[-1] if lists else "")]
    return {name.split()[-1]: default.strip() for name, _, default in declared if default.strip()}


def _extents(block: str, host: str) -> tuple[str, ...]:
    """The extents that a dim3 is given, whether it has a name or not."""
    declared = re.search(rf"\bdim3\s+(?:\w+\s*\([^;]*\)\s*,\s*)*{re.escape(block)}\s*[({{]", host)
    text, start = (host, declared.end() - 1) if declared else (block, block.find("("))
    if declared or re.match(r"dim3\s*\(", block):
        return split_arguments(text[start + 1 : closing(text, start)])
    return (block,)


def _variables(before: str) -> dict[str, str]:
    """What each variable was set to last; a variable that is also changed in place has no known value."""
    found = {}
    before = re.sub(r"\btemplate\s*<[^;{}<>]*>", "", before)
    for part in (part for text in re.split("[;{}]", before) for part in split_arguments(text)):
        if match := re.search(r"(?<![\w.>])(\w+) ?=(?!=) ?([^=]+)$", part):
            found[match[1]] = match[2]
    changed = re.findall(r"\b(\w++)\s*+(?:[-+*/%&|^]=|<<=|>>=|\+\+|--)|(?:\+\+|--)(\w+)", before)
    return {name: text for name, text in found.items() if not any(name in names for names in changed)}
