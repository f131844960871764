"""Read the tolerances and the bounds of rounding errors of a section `verify`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from autotune.core.error_bounds import DATA, PROBABLE, UNIT_ROUNDOFF, WORST, ErrorSpec
from autotune.core.records import ArgumentSpec
from autotune.space.yaml_document import Element

ERROR_KEYS = ("error", "in", "bound", "magnitude")
_ACCUMULATE = re.compile(r"accumulate\((.*)\)", re.DOTALL)


def read_tolerances(
    verify: Mapping[str, Element], arguments: Sequence[ArgumentSpec], names: Collection[str]
) -> dict[str, Any]:
    """The fields `rtol` and `atol` of a space, and the `tolerances` of some outputs; raises SpaceError."""
    outputs = [item.name for item in arguments if item.role in ("out", "inout")]
    usual: dict[str, str] = {}
    own: dict[str, dict[str, str]] = {}
    for key, element in ((key, verify[key]) for key in ("rtol", "atol") if key in verify):
        if element.is_scalar:
            usual[key] = element.expression(names)
        else:
            for name, given in _by_output(element, outputs, "an output").items():
                own.setdefault(name, {})[key] = given.expression(names)
    both = {"rtol": "0", "atol": "0"} | usual
    return {**usual, "tolerances": {name: tuple((both | given).values()) for name, given in own.items()}}


def _by_output(element: Element, outputs: Collection[str], expected: str) -> dict[str, Element]:
    """The entries of a mapping, or the one entry for all outputs."""
    entries = dict.fromkeys(outputs, element) if element.is_scalar else element.mapping()
    for name, entry in entries.items():
        if name not in outputs:
            raise entry.error(f"expected {expected}: {', '.join(outputs) or 'none'}")
    return entries


def read_errors(
    verify: Mapping[str, Element],
    arguments: Sequence[ArgumentSpec],
    dtypes: Sequence[str],
    names: Collection[str],
    *,
    has_file: bool,
) -> dict[str, ErrorSpec]:
    """The bounds by output, whose expressions may read `names`; raises SpaceError.

    A reference that is a file can be run on absolute values.
    """
    given = [verify[key] for key in ERROR_KEYS if key in verify]
    if "error" not in verify:
        if given:
            raise given[0].error("belongs to an error bound: add error: accumulate(OPERATIONS)")
        return {}
    outputs = {
        item.name: dtypes if item.dtype == "DTYPE" else (item.dtype,)
        for item in arguments
        if item.role in ("out", "inout")
    }
    floating = [name for name, kinds in outputs.items() if any(kind in UNIT_ROUNDOFF for kind in kinds)]
    error = verify["error"]
    bounds = _by_output(error, floating, "an output of floating-point numbers")
    if not bounds:
        raise error.error("no output has floating-point numbers")
    narrow = verify.get("in")
    kinds = narrow.mapping() if narrow is not None and not narrow.is_scalar else dict.fromkeys(bounds, narrow)
    kind = verify["bound"].choice((WORST, PROBABLE)) if "bound" in verify else WORST
    magnitude = DATA
    if "magnitude" in verify and verify["magnitude"].value() != DATA:
        magnitude = verify["magnitude"].expression(names)
    elif not has_file or ("full" in verify and verify["full"].text() == "trusted"):
        raise error.error(
            "the magnitude of the data needs a reference file that runs at every size: give magnitude an "
            "expression, at least the sum of the magnitudes of what is added"
        )
    specs = {}
    for name, element in bounds.items():
        match = _ACCUMULATE.fullmatch(element.text().strip())
        if match is None:
            raise element.error(
                f"expected accumulate(OPERATIONS), such as accumulate(k); found {element.text()!r}"
            )
        dtype = kinds.get(name)
        specs[name] = ErrorSpec(
            element.part(match[1]).expression(names),
            dtype.choice(UNIT_ROUNDOFF) if dtype else "",
            kind,
            magnitude,
        )
    return specs
