"""The keys of trials and the headers of journals, spelled out.

This is version 1. Keep its words when fields and classes are renamed; a change would invalidate all journals.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from autotune.core.records import Config, Sizes
from autotune.core.trials import Problem
from autotune.evaluation.journal_edits import ARGUMENT, UNKNOWN, WORKLOAD
from autotune.problem.workload import Workload, canonical
from autotune.space import Fill, FilledArgument, SpaceSpec

_SIZE = r"\('([A-Za-z_][A-Za-z0-9_]*)', ([1-9][0-9]{0,17})\)"


def trial_key(
    source_sha256: str,
    config: Config,
    options: Sequence[str],
    *,
    compiler: str,
    workloads: Iterable[Workload],
    environment: Mapping[str, str],
) -> str:
    """Return the key of a trial, version 1: 32 hexadecimal digits.

    To rename what is hashed would invalidate every journal. `workloads` are those to verify on, then the
    timed one; `environment` is as the function of that name returns it.
    """
    texts = {  # sorted by name, as in the JSON text of one object
        "cases": f"[{','.join(workload.identity_text for workload in workloads)}]",
        "compiler": canonical(compiler),
        "config": config.key,
        "environment": canonical(environment),
        "options": canonical(options),
        "source": canonical(source_sha256),
    }
    text = "{" + ",".join(f'"{name}":{part}' for name, part in texts.items()) + "}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def journal_header(
    spec: SpaceSpec, problem: Problem, source_sha256: str, reference_sha256: str, hidden: str = ""
) -> dict[str, str]:
    """The fields that all rows of a journal share, without parameters and constraints: rows have their own.

    `hidden` names what the compiler reads besides the source; empty for nothing.
    """
    return (
        {
            "kernel": spec.kernel,
            "source": source_sha256[:16],
            "reference": reference_sha256[:16],
            "sizes": sizes_text(problem.sizes),
            "dtype": problem.dtype,
            "arguments": hashlib.sha256(_arguments_text(spec).encode()).hexdigest()[:16],
        }
        | ({"data": problem.data} if problem.data else {})
        | ({"special": ", ".join(spec.special)} if spec.special else {})
        | ({"variants": ", ".join(spec.variants)} if spec.variants else {})
        | ({UNKNOWN: hidden} if hidden else {})
    )


def journal_notes(spec: SpaceSpec) -> dict[str, str]:
    """Notes that say in words what the header's `arguments` covers; older journals have fewer or none."""
    return {
        "verify_sizes": "; ".join(map(sizes_text, spec.verify_sizes)) or "none",
        "tolerance": f"rtol {spec.rtol} and atol {spec.atol}{_bounds_text(spec)}",
        WORKLOAD: workload_sha256(spec)[:16],
        **{f"{ARGUMENT}{item.name}": _argument_text(item) for item in spec.arguments},
    }


def _argument_text(item: FilledArgument) -> str:
    """An argument in words: `float32 [n] in, uniform -1 1`."""
    if item.value is not None:
        return f"{item.dtype} {item.value}"
    if item.of:
        return f"{item.dtype} at {item.offset} of {item.of}"
    fill = "" if item.fill is None else f", {' '.join(map(str, (item.fill.kind, *item.fill.arguments)))}"
    symbol = f", symbol {item.symbol}" if item.symbol else ""
    return f"{item.dtype} [{', '.join(item.shape)}] {item.role}{fill}{symbol}"


def workload_sha256(spec: SpaceSpec) -> str:
    """A hash of what a time depends on in a space file except for the configuration: inputs and launches."""
    launches = [
        {name: value for name, value in asdict(step).items() if value or name != "constants"}
        for step in spec.launch
    ]
    options = [{kind: dict(of_kind) for kind, of_kind in spec.compiler_options.items()}, spec.compiler]
    parts: list[object] = [_listed_arguments(spec), list(spec.derived.items()), launches, options]
    parts += [dict(spec.device)] if spec.device else []
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def sizes_text(sizes: Sizes) -> str:
    """Sizes, sorted by name, as in a journal's header: `[('m', 8), ('n', 4096)]`."""
    return "[" + ", ".join(f"('{name}', {size})" for name, size in sorted(sizes.items())) + "]"


def header_sizes(header: Mapping[str, Any]) -> Sizes | None:
    """The sizes in a journal's header; None if it has none."""
    text = str(header.get("sizes"))
    if re.fullmatch(rf"\[({_SIZE}(, (?=\()|(?=\])))*\]", text) is None:
        return None
    return {name: int(size) for name, size in re.findall(_SIZE, text)}


def _arguments_text(spec: SpaceSpec) -> str:
    """Version 1 of the header's arguments and verification; its words are not today's names."""
    bounds = f", {text!r}" if (text := _bounds_text(spec)) else ""
    return f"({_listed_arguments(spec)}, {spec.verify_sizes!r}, {spec.rtol!r}, {spec.atol!r}{bounds})"


def _bounds_text(spec: SpaceSpec) -> str:
    bounds = (
        f", {name} within rtol {rtol} and atol {atol}"
        for name, (rtol, atol) in sorted(spec.tolerances.items())
    )
    return "".join(bounds) + "".join(
        f", {name} within {error.kind} accumulate({error.operations}) in {error.dtype or 'its type'} "
        f"of {error.magnitude}"
        for name, error in sorted(spec.errors.items())
    )


def _listed_arguments(spec: SpaceSpec) -> str:
    def fill_text(fill: Fill | None) -> str:
        return "None" if fill is None else f"Fill(kind={fill.kind!r}, arguments={fill.arguments!r})"

    arguments = [
        f"FilledArgument(name={item.name!r}, dtype={item.dtype!r}, role={item.role!r}, shape={item.shape!r}, "
        f"value={item.value!r}, fill={fill_text(item.fill)}"
        + (f", symbol={item.symbol!r}" if item.symbol else "")
        + (f", of={item.of!r}, offset={item.offset!r})" if item.of else ")")
        for item in spec.arguments
    ]
    return f"({', '.join(arguments)}{',' * (len(arguments) == 1)})"
