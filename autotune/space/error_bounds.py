"""Read the bounds of rounding errors of a section `verify`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from autotune.core.error_bounds import DATA, PROBABLE, UNIT_ROUNDOFF, WORST, ErrorSpec
from autotune.core.records import ArgumentSpec
from autotune.space.yaml_document import Element

ERROR_KEYS = ("error", "in", "bound", "magnitude")
_ACCUMULATE = re.compile(r"accumulate\((.*)\)", re.DOTALL)


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
    bounds = dict.fromkeys(floating, error) if error.is_scalar else error.mapping()
    for name, element in bounds.items():
        if name not in floating:
            raise element.error(
                f"expected an output of floating-point numbers: {', '.join(floating) or 'none'}"
            )
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
