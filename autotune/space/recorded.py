"""Spaces of recorded configurations, searched like the space of a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from autotune.core.records import Config, DeviceInfo, LaunchSpec, Parameter, Sizes, Value
from autotune.core.trials import Problem
from autotune.errors import InputError
from autotune.hardware.names import traits_of_name
from autotune.space.enumeration import Rows
from autotune.space.space import Space
from autotune.space.spec import SpaceSpec

_NO_PATH = Path("recorded")  # in place of files: a recorded space has none


class RecordedSpace(Space):
    """A space whose valid configurations are listed instead of constrained."""

    def why_invalid(self, config: Mapping[str, Value]) -> tuple[str, ...]:
        """As in any space; also a configuration that is not listed is invalid."""
        return super().why_invalid(config) or (() if config in self else ("not a recorded configuration",))


def recorded_space(
    kernel: str,
    device: DeviceInfo,
    parameters: Sequence[Parameter],
    configs: Sequence[Mapping[str, Value]],
    sizes: Sizes | None = None,
) -> RecordedSpace:
    """A space whose valid configurations are `configs`.

    Repeated configurations count once; 1, 1.0 and True are one value. Configurations are ordered by the
    positions of their values in `parameters`, and the first serves as the default. Raises InputError if
    there is none, or if one lacks a parameter or has an unlisted value.
    """
    rows = _rows(kernel, parameters, configs)
    problem = Problem(dict(sizes or {}), "float32")
    first = zip(parameters, rows[0].tolist(), strict=True)
    default = Config({parameter.name: parameter.values[position] for parameter, position in first})
    spec = bare_spec(kernel, parameters, default, problem.sizes)
    return RecordedSpace(spec, device, problem, rows)


def bare_spec(kernel: str, parameters: Sequence[Parameter], default: Config, sizes: Sizes) -> SpaceSpec:
    """A SpaceSpec with parameters only: nothing to compile or launch."""
    return SpaceSpec(
        path=_NO_PATH,
        sha256="",
        kernel=kernel,
        dialect="portable",
        source=_NO_PATH,
        reference=_NO_PATH,
        sizes={"default": sizes},
        parameters=tuple(parameters),
        default=default,
        launch=(LaunchSpec(kernel, ("1",), ("1",), ()),),
    )


def unknown_device(name: str, slug: str) -> DeviceInfo:
    """A device of which only the name is known; its limits exclude no configuration."""
    traits = traits_of_name(name)
    return DeviceInfo(
        backend="recorded",
        name=name,
        slug=slug,
        kind="gpu",
        vendor=traits.vendor or "",
        architecture=traits.architecture or "",
        compute_units=1,
        warp_size=32,
        max_threads_per_block=1024,
        shared_bytes_per_block=2**31,
        registers_per_block=None,
        memory_bytes=2**40,
        memory_bandwidth_bytes_per_s=None,
        cache_bytes=0,
        has_shuffle=True,
        driver="",
        runtime="",
    )


def _rows(kernel: str, parameters: Sequence[Parameter], configs: Sequence[Mapping[str, Value]]) -> Rows:
    """The distinct configurations as sorted positions of values, in the dtype of `Space.rows`."""
    if not configs or not parameters:
        raise InputError(f"{kernel}: no configuration is recorded")
    longest = max(len(parameter.values) for parameter in parameters)
    columns = []
    for parameter in parameters:
        positions = {value: number for number, value in enumerate(parameter.values)}
        try:
            columns.append([positions[config[parameter.name]] for config in configs])
        except KeyError as error:
            raise InputError(f"{kernel}: {parameter.name}: no value {error}") from None
    rows = np.unique(np.array(columns, np.min_scalar_type(longest - 1)).T, axis=0)
    return np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder(">")))
