"""What was found in a kernel's source, in words."""

from __future__ import annotations

from pathlib import Path

from autotune.scaffold import Scaffold


def findings(made: Scaffold, space: Path, reference: Path) -> str:
    """Kernels, arguments with their roles, macros with their values, and what to do next."""
    called = ", ".join(kernel.entry for kernel in made.source.kernels)
    lines = [f"{called}: dialect {made.source.dialect}; the space is for {made.kernel.entry}", "", "argument"]
    for item in made.guess.passed:
        what = f"{item.role.value} [{item.shape}]" if item.role is not None else f"= {item.value}"
        lines.append(f"  {item.argument.text:<40} {what}")
    lines += ["macro"]
    for parameter in made.guess.parameters:
        values = ", ".join(map(str, parameter.values))
        lines.append(
            f"  {parameter.name:<40} {values}" + (f"  ({parameter.remark})" if parameter.remark else "")
        )
    lines += [f"  {macro.name:<40} left at {macro.default}" for macro in made.guess.left_alone]
    guessed = (
        "guessed from its formula" if made.guess.reference else "returns nothing yet: nothing is compared"
    )
    lines += [
        "",
        f"wrote {space}: read its comments",
        f"wrote {reference}: {guessed}",
        f"next  autotune search {space}",
    ]
    return "\n".join(lines)
