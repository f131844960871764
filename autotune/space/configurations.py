"""The configurations that a space file names: its default and its landmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.core.records import Config, Parameter, Value
from autotune.core.text import hint
from autotune.space.yaml_document import Element


@dataclass(frozen=True)
class Landmark:
    """A named, complete configuration with a note for its reader."""

    name: str
    config: Config
    note: str


def read_config(
    entries: Mapping[str, Element],
    parameters: tuple[Parameter, ...],
    base: Mapping[str, Value],
    place: Element,
) -> Config:
    """A complete configuration in declared order; `base` gives the values of unlisted parameters."""
    domains = {parameter.name: parameter.values for parameter in parameters}
    values = dict(base)
    for name, entry in entries.items():
        if name not in domains:
            raise entry.error(f"no parameter is called {name!r}{hint(name, domains)}")
        value = entry.value()
        if (type(value), value) not in [(type(item), item) for item in domains[name]]:
            listed = ", ".join(str(item) for item in domains[name])
            raise entry.error(
                f"expected one of {listed}; found {value!r}; choose one, or add {value} to parameters.{name}"
            )
        values[name] = value
    if missing := [name for name in domains if name not in values]:
        first = ", ".join(f"{name}: {domains[name][0]}" for name in missing)
        raise place.error(f"expected a value for every parameter; missing: {', '.join(missing)}; add {first}")
    return Config({name: values[name] for name in domains})


def read_landmarks(
    element: Element, parameters: tuple[Parameter, ...], default: Config
) -> tuple[Landmark, ...]:
    """Read named configurations; what one does not list is as in the default."""
    landmarks = []
    for name, entry in element.mapping().items():
        entries = entry.mapping(may_be_empty=True)
        note = entries.pop("note", None)
        config = read_config(entries, parameters, default, entry)
        landmarks.append(Landmark(name, config, note.text() if note else ""))
    return tuple(landmarks)
