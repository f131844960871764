"""The launch limits of a device as constraints, so that no space file has to state them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from autotune.core.expressions import Expression, parse
from autotune.core.launch_plan import device_values
from autotune.core.records import DeviceInfo, LaunchSpec
from autotune.hardware.launch_limits import amounts, conditions


def device_limits(
    plan: Sequence[LaunchSpec], device: DeviceInfo, computed: Container[str] = ()
) -> tuple[Expression, ...]:
    """The conditions under which a device accepts every launch of a plan.

    A condition that reads one of the `computed` names, which come from Python functions, is left out: the
    device checks it at the launch. So is the least of each number, which the launch plan checks.
    """
    texts = (
        f"not ({step.when}) or {text}" if step.when != "True" else text
        for step in plan
        for text in _limits(step, device)
    )
    limits = (parse(text) for text in dict.fromkeys(texts))
    return tuple(limit for limit in limits if not any(name in computed for name in limit.names))


def _limits(step: LaunchSpec, device: DeviceInfo) -> Iterator[str]:
    for amount in amounts(step, device):
        limit = f"{amount.text} <= {amount.most}"
        if amount.most and not (amount.text.isdecimal() and parse(limit).holds(device_values(device))):
            yield limit
    yield from conditions(step, device)
