"""Read the section `launch` of a space file; no expression is evaluated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autotune.core.json_values import is_name
from autotune.core.launch_plan import AMD_OPTIONS, NO_ARRAY, TRITON, TRITON_OPTIONS, TRITON_USUAL, is_entry
from autotune.core.records import ArgumentSpec, CallSpec, LaunchSpec
from autotune.core.text import hint
from autotune.sources.triton import TritonParameter
from autotune.space.arguments import FilledArgument
from autotune.space.yaml_document import Element

# one expression each
_ATTRIBUTES = ("shared_bytes", "when", "repeat", "cooperative", "programmatic")
_EXAMPLES = {  # of required keys
    "entry": "my_kernel",
    "grid": '["ceil_div(n, BLOCK_SIZE)"]',
    "block": "[BLOCK_SIZE]",
}


def read_launches(
    section: Element,
    arguments: Sequence[ArgumentSpec],
    names: Collection[str],
    dialect: str,
    triton: Mapping[str, Sequence[TritonParameter]],
) -> tuple[LaunchSpec, ...]:
    """Read the launch plan, whose expressions may read `names`; raises SpaceError.

    `triton` has the kernels of a source in Triton, with their parameters.
    """
    known = {argument.name: argument for argument in arguments}
    if dialect == TRITON:
        return tuple(_triton_launch(element, known, names, triton) for element in section.items())
    return tuple(_launch(element, known, names, dialect) for element in section.items())


def with_results(
    plan: tuple[LaunchSpec, ...], call: CallSpec, arguments: Sequence[FilledArgument], section: Element
) -> tuple[LaunchSpec, ...]:
    """The launch plan, in which an array that a call gets and returns holds the result of each swap of it.

    Raises SpaceError where the other array does not begin as a copy of it, for either may be the first then.
    """
    copies = {one.name: one.fill.arguments[0] for one in arguments if one.fill and one.fill.kind == "copy"}
    updated = {*call.inputs} & {*call.returns}
    results = [next((name for name in step.swap if name in updated), "") for step in plan]
    for step, name in zip(plan, results, strict=True):
        other = next((one for one in step.swap if name and one != name), "")
        if other and (copies.get(other) != name or other in call.inputs):
            raise section.mapping()["returns"].error(
                f"{name} swaps with {other}, which has the result after an odd number of repetitions; "
                f"give {other} `role: inout` and `fill: {{copy: {name}}}`: then either may come first"
            )
    return tuple(replace(step, result=name) for step, name in zip(plan, results, strict=True))


def _triton_launch(
    element: Element,
    arguments: Mapping[str, ArgumentSpec],
    names: Collection[str],
    kernels: Mapping[str, Sequence[TritonParameter]],
) -> LaunchSpec:
    """A launch of a Triton kernel, whose compiler decides the block and the shared memory."""
    entries = element.record(("entry", "grid", "arguments"), ("when", "swap", "repeat", "constants"))
    passed = _passed(entries, arguments, (NO_ARRAY,))
    entry = entries["entry"].choice(kernels)
    taken = [parameter.name for parameter in kernels[entry] if not parameter.is_constant]
    if len(taken) != len(passed):
        raise entries["arguments"].error(
            f"{entry} takes ({', '.join(taken)}) besides its constants; "
            f"the launch passes ({', '.join(passed)})"
        )
    own = {key: item.expression(names) for key, item in _own_constants(entries, kernels[entry]).items()}
    for item in kernels[entry]:
        if item.is_constant and item.name not in {*names, *own} and not item.has_default:
            raise element.error(
                f"{entry} needs {item.name} as a tl.constexpr; declare a parameter, a size or a derived name"
            )
    shared = (item.name for item in kernels[entry] if item.is_constant and item.name in {*names} - {*own})
    constants = (*shared, *(f"{name}={text}" for name, text in own.items()))
    constants += tuple(name for name in (*TRITON_OPTIONS, *AMD_OPTIONS) if name in names)
    if not constants:
        raise element.error(f"{entry} has nothing to tune: no tl.constexpr, and no num_warps in the space")
    warps = "num_warps" if "num_warps" in names else TRITON_USUAL["num_warps"]
    return LaunchSpec(
        entry=entry,
        grid=_extent(entries["grid"], names),
        block=(f"{warps} * device.warp_size",),
        arguments=passed,
        swap=_swap(element, entries, arguments, passed) if "swap" in entries else (),
        constants=constants,
        **_attributes(entries, names),
    )


def _own_constants(
    entries: Mapping[str, Element], parameters: Sequence[TritonParameter]
) -> Mapping[str, Element]:
    """The constants that have a separate value in a launch."""
    constants = entries["constants"].mapping() if "constants" in entries else {}
    known = [parameter.name for parameter in parameters if parameter.is_constant]
    for name, item in constants.items():
        if name not in known:
            raise item.error(f"{name} is no tl.constexpr of {entries['entry'].text()}{hint(name, known)}")
    return constants


def _launch(
    element: Element, arguments: Mapping[str, ArgumentSpec], names: Collection[str], dialect: str
) -> LaunchSpec:
    entries = element.record(
        ("entry", "grid", "block", "arguments"),
        ("swap", "cluster", *_ATTRIBUTES),
        _EXAMPLES | {"arguments": f"[{', '.join(arguments)}]"},
    )
    passed = _passed(entries, arguments)
    if dialect == "opencl" and "shared_bytes" in entries:
        raise entries["shared_bytes"].error(
            "OpenCL takes no size from the launch: pass an argument of role local, which has a shape"
        )
    return LaunchSpec(
        entry=_entry_name(entries["entry"]) if dialect == "cuda" else entries["entry"].identifier(),
        grid=_extent(entries["grid"], names),
        block=_extent(entries["block"], names),
        arguments=passed,
        swap=_swap(element, entries, arguments, passed) if "swap" in entries else (),
        cluster=_extent(entries["cluster"], names) if "cluster" in entries else (),
        **_attributes(entries, names),
    )


def _passed(
    entries: Mapping[str, Element], arguments: Mapping[str, ArgumentSpec], others: Collection[str] = ()
) -> tuple[str, ...]:
    """The names of the arguments of a launch, which may also pass `others`."""
    items = entries["arguments"].items(may_be_empty=True)
    passed = tuple(item.shown if item.is_scalar else item.text() for item in items)
    for item, name in zip(items, passed, strict=True):
        if name in others:
            continue
        if name not in arguments:
            left = [argument for argument in arguments if argument not in passed]
            mend = f"; did you mean {left[0]}?" if len(left) == 1 else hint(name, arguments)
            if not is_name(name):
                mend = (
                    "; declare {name: a, dtype: float32, value: 1}, for example, in `arguments`, and write a"
                )
            raise item.error(f"no argument is called {name!r}{mend}")
        if arguments[name].symbol:
            raise item.error(f"{name} is copied to {arguments[name].symbol}; a launch does not pass it")
    return passed


def _attributes(entries: Mapping[str, Element], names: Collection[str]) -> dict[str, Any]:
    """The expressions of a launch that have a default."""
    return {name: entries[name].expression(names) for name in _ATTRIBUTES if name in entries}


def _swap(
    element: Element,
    entries: Mapping[str, Element],
    arguments: Mapping[str, ArgumentSpec],
    passed: tuple[str, ...],
) -> tuple[str, ...]:
    """The two arrays that every other repetition exchanges."""
    if "repeat" not in entries:
        raise element.error("swap exchanges two arrays in every other repetition: add repeat")
    items = entries["swap"].items()
    names = tuple(item.text() for item in items)
    if len(set(names)) != 2:
        raise entries["swap"].error(f"expected two arrays, found {', '.join(names)}")
    for item, name in zip(items, names, strict=True):
        if name not in passed:
            raise item.error(f"{name!r} is not among the launch's arguments{hint(name, passed)}")
        if arguments[name].role not in ("out", "inout", "scratch"):
            raise item.error(
                f"{name} has the role {arguments[name].role}: only arrays that a kernel writes can swap"
            )
    one, other = (arguments[name] for name in names)
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        raise entries["swap"].error(f"{one.name} and {other.name} differ in dtype or shape")
    return names


def _entry_name(element: Element) -> str:
    entry = " ".join(element.text().split())
    if not is_entry(entry):
        raise element.error(
            "expected a kernel's name, with template arguments or argument types where it has them, such as "
            f"sum, ns::sum<float, BLOCK_SIZE> or sum(float *, int); found {entry!r}"
        )
    return entry


def _extent(element: Element, names: Collection[str]) -> tuple[str, ...]:
    extent = tuple(item.expression(names) for item in element.items())
    if len(extent) > 3:
        raise element.error(f"expected at most three dimensions, found {len(extent)}")
    return extent
