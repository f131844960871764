"""The configurations that a space file names: its default and its landmarks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, product

from autotune.core.expressions import parse
from autotune.core.records import Config, Parameter, Value
from autotune.core.text import hint
from autotune.core.trials import Status
from autotune.errors import ExpressionError
from autotune.space.yaml_document import Element

# Macros that only a diagnosis defines: the source then leaves out a part of its work, or one trouble.
PARTS = ("MEMORY_ONLY", "COMPUTE_ONLY")
TROUBLES = (
    *("NO_BANK_CONFLICTS", "COALESCED", "NO_DIVERGENCE", "NO_ATOMICS", "NO_BARRIERS"),
    *("NO_BOUNDS_CHECKS", "NO_SPILLS"),
)
_ANY_VALID = "values that satisfy the constraints"
_MAX_TRIED = 10_000  # combinations, for the values that a message offers


@dataclass(frozen=True)
class Landmark:
    """A named, complete configuration."""

    name: str
    config: Config
    note: str  # for its reader
    fixed_by: Mapping[str, str] = field(default_factory=dict)  # by the macro of a trouble: who is rid of it
    expect: Status = Status.OK  # how its trial ends: a mistake that teaches something is a wrong result


def read_config(
    element: Element,
    parameters: tuple[Parameter, ...],
    base: Mapping[str, Value],
    constraints: Iterable[str] = (),
    *,
    ignored: Collection[str] = (),
) -> Config:
    """A complete configuration in declared order; raises SpaceError.

    `base` has the values of unlisted parameters; keys that are `ignored` are no parameters. Values that a
    message offers satisfy the constraints.
    """
    domains = {parameter.name: parameter.values for parameter in parameters}
    values = dict(base)
    shown = ", ".join(f"{parameter.name}: {parameter.values[0]}" for parameter in parameters)
    expected = () if base else domains
    entries = element.mapping(may_be_empty=bool(base), example=f"{{{shown}}}", expected=expected)
    for name, entry in entries.items():
        if name in ignored:
            continue
        if name not in domains:
            raise entry.error(f"no parameter is called {name!r}{hint(name, domains)}{entry.others(name)}")
        value = entry.value()
        if (type(value), value) not in [(type(item), item) for item in domains[name]]:
            listed = ", ".join(str(item) for item in domains[name])
            is_quoted = value in [str(item) for item in domains[name]]
            mend = (
                f"write {value} without quotes"
                if is_quoted
                else f"choose one, or add {value} to parameters.{name}"
            )
            if isinstance(domains[name][0], str) != isinstance(value, str) and not is_quoted:
                kinds = ("names", "numbers") if isinstance(value, int | float) else ("numbers", "names")
                mend = (
                    f"the values in parameters.{name} are {kinds[0]}: choose one, or write {kinds[1]} there"
                )
            raise entry.error(f"expected one of {listed}; found {value!r}; {mend}")
        values[name] = value
    if missing := [name for name in domains if name not in values]:
        whole = completed(values, parameters, constraints)
        added = ", ".join(f"{name}: {whole[name]}" for name in missing) if whole else _ANY_VALID
        raise element.error(
            f"expected a value for every parameter; missing: {', '.join(missing)}; add {added}"
        )
    return Config({name: values[name] for name in domains})


def completed(
    values: Mapping[str, Value], parameters: Iterable[Parameter], constraints: Iterable[str]
) -> dict[str, Value] | None:
    """Values for all parameters that satisfy the constraints on parameters alone; None if none are found."""
    domains = {item.name: (values[item.name],) if item.name in values else item.values for item in parameters}
    parsed = []
    for text in constraints:
        with suppress(ExpressionError):  # told where the constraints are read
            parsed.append(parse(text))
    read = [constraint for constraint in parsed if constraint.names <= {*domains}]
    choices = (dict(zip(domains, choice, strict=True)) for choice in product(*domains.values()))
    tried = islice(choices, _MAX_TRIED)
    return next((choice for choice in tried if all(constraint.holds(choice) for constraint in read)), None)


def read_landmarks(
    element: Element, parameters: tuple[Parameter, ...], default: Config
) -> tuple[Landmark, ...]:
    """Read named configurations; a parameter that one does not list has the default's value."""
    landmarks = []
    named = element.mapping()
    for name, entry in named.items():
        config = read_config(entry, parameters, default, ignored=("note", "fixed_by", "expect"))
        keys = entry.mapping(may_be_empty=True)
        note = keys["note"].text() if "note" in keys else ""
        fixes = keys["fixed_by"].record((), TROUBLES).items() if "fixed_by" in keys else ()
        fixed_by = {trouble: fix.choice(named) for trouble, fix in fixes}
        expect = (
            Status(keys["expect"].choice((Status.WRONG_RESULT.value,))) if "expect" in keys else Status.OK
        )
        if expect is not Status.OK and config == default:
            raise keys["expect"].error("the default cannot be wrong: list a value that differs from it")
        landmarks.append(Landmark(name, config, note, fixed_by, expect))
    return tuple(landmarks)
