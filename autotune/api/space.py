"""A space as Python users name it: a file, or dictionaries and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from autotune.compilers.source_text import SourceText, read_source, source_of_text
from autotune.core.trials import USUAL, CallMode
from autotune.devices.listing import Found
from autotune.errors import InputError
from autotune.space import SpaceSpec, load_space
from autotune.space.functions import Functions, Values
from autotune.space.spec import read_space
from autotune.space.yaml_document import document_of
from autotune.tuning.task import Target, TuningTask, find_space_file, read_task

_EXAMPLES = {"parameters": '{"BLOCK_SIZE": [64, 128]}', "sizes": '{"n": 1000}'}
_SUFFIXES = {"portable": ".cu", "cuda": ".cu", "opencl": ".cl", "python": ".py"}


class Space:
    """What can be tuned of a kernel: made of dictionaries and functions here, or of a file by `load`.

    The arguments are the keys of a space file, with the same content. In addition `source` may be the source
    itself, `reference` and `inputs` may be functions, and `constraints` may have functions among them. A
    function runs in this process; a constraint gets a mapping of parameters, sizes and derived names.
    """

    def __init__(
        self,
        kernel: str,
        *,
        source: str | Path,
        parameters: Mapping[str, Sequence[Any] | Mapping[str, Any]],
        arguments: Sequence[Mapping[str, Any]],
        launch: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        sizes: Mapping[str, Any],
        reference: str | Path | Callable[..., Mapping[str, Any]],
        inputs: Callable[..., Mapping[str, Any]] | None = None,
        default: Mapping[str, Any] | None = None,
        constraints: Sequence[str | Callable[[Values], Any]] = (),
        dialect: str = "portable",
        **others: Any,
    ) -> None:
        """Check everything that needs no device; raises SpaceError.

        Args:
            kernel: Name of the result in the cache.
            source: Path of the source, or the source itself, which has more than one line.
            parameters: Values by name, with a condition if there is one, as in a space file.
            arguments: As in a space file.
            launch: One launch or several, as in a space file.
            sizes: Sizes by name, or named sets of them as in a space file.
            reference: Path of a reference file, or its function `reference(inputs, sizes)`, which may have a
                third parameter `indices`.
            inputs: The function `inputs(sizes, rng)` of a reference file, for arrays with `fill: inputs`.
            default: The configuration that others are compared with; None takes the first valid one.
            constraints: Expressions and functions.
            dialect: Language of the source.
            **others: Further keys of a space file, such as `verify_sizes`.
        """
        for key, value in {"parameters": parameters, "sizes": sizes}.items():
            if not isinstance(value, Mapping):
                raise InputError(f"Space: {key}={value!r}: expected a dictionary, such as {_EXAMPLES[key]}")
        is_text = isinstance(source, str) and "\n" in source
        name = f"{kernel}{_SUFFIXES.get(dialect, '')}"
        self._source = source_of_text(str(source), name) if is_text else None
        functions = Functions(
            reference=reference if callable(reference) else None,
            inputs=inputs,
            constraints=tuple(item for item in constraints if callable(item)),
        )
        is_plain = all(isinstance(size, Real) for size in sizes.values())
        document = {
            "schema": 1,
            "kernel": kernel,
            "dialect": dialect,
            "source": None if is_text else str(source),
            "reference": None if callable(reference) else str(reference),
            "sizes": {"default": sizes} if is_plain else sizes,
            "parameters": parameters,
            "constraints": [item for item in constraints if not callable(item)] or None,
            "default": default or {name: _first_value(name, values) for name, values in parameters.items()},
            "arguments": arguments,
            "launch": [launch] if isinstance(launch, Mapping) else launch,
            **others,
        }
        given = {name: _plain(item, name) for name, item in document.items() if item is not None}
        root, data = document_of(given, Path(f"Space({kernel!r})"))
        self.spec = read_space(root, data, functions, has_source=not is_text)
        self._finds_default = default is None

    @classmethod
    def load(cls, path: str | Path) -> Space:
        """Read a space file, or one of those that come with autotune by its name: `reduce`."""
        return cls.of(load_space(find_space_file(Path(path))))

    @classmethod
    def of(cls, spec: SpaceSpec, source: SourceText | None = None) -> Space:
        """A space that is known in full, and its kernel; None reads it from its file."""
        space = cls.__new__(cls)
        space.spec, space._source, space._finds_default = spec, source, False
        return space

    def bind(
        self,
        device: str | None = None,
        sizes: Mapping[str, int] | None = None,
        dtype: str | None = None,
        data: str | None = None,
        found: Found | None = None,
        measure: CallMode = USUAL,
        devices: str | None = None,
    ) -> TuningTask:
        """Enumerate the valid configurations on a device; raises InputError.

        Args:
            device: As `--device` of the command line takes it.
            sizes: Sizes that replace those of the space.
            dtype: Element type; None takes the first.
            data: Name of the inputs' content; None takes the first.
            found: The device, and others to search with, if they were found already.
            measure: The way of calls that timing imitates.
            devices: Several devices to search with, as `--devices` takes them.
        """
        target = Target(self.spec.path, device, dict(sizes or {}), dtype, data, measure, devices)
        source = self._source or read_source(self.spec.source, self.spec.include_dirs)
        task = read_task(target, found_devices=found, files=(self.spec, source))
        if not self._finds_default or task.spec.default in task.space:
            return task
        return with_default(task, 0)

    def __repr__(self) -> str:
        spec = self.spec
        domains = ", ".join(f"{item.name}: {len(item.values)} values" for item in spec.parameters)
        return f"Space({spec.kernel!r}, {domains})"


def with_default(task: TuningTask, row: int) -> TuningTask:
    """A task with one of its valid configurations as the default."""
    spec = replace(task.spec, default=task.space.config(row))
    space = type(task.space)(spec, task.device, task.space.problem, task.space.rows)
    return replace(task, spec=spec, space=space)


def _first_value(name: str, given: Any) -> Any:
    """The first value of a parameter; its list may stand with a condition."""
    values = given.get("values") if isinstance(given, Mapping) else given
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        is_single = isinstance(values, int | float | str) and "(" not in str(values)
        mend = f"write [{values!r}]" if is_single else "write a list of its values"
        raise InputError(f"Space: parameters: {name}: expected a list, found {values!r}; {mend}")
    return values[0]


def _plain(value: Any, place: str) -> Any:
    """Values as YAML has them: lists for all sequences, Python's own numbers, and names of types."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item, f"{place}.{name}") for name, item in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple | range | np.ndarray):
        return [_plain(item, f"{place}[{number}]") for number, item in enumerate(value)]
    if value is None or isinstance(value, int | float | str):
        return value
    mend = "; write an expression as a text" if callable(value) else ""
    raise InputError(
        f"Space: {place}: {value!r} is no value of a space: expected numbers, texts, lists or dictionaries"
        f"{mend}"
    )
