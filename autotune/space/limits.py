"""The launch limits of a device as constraints, so that no space file has to state them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import zip_longest

from autotune.core.expressions import Expression, parse
from autotune.core.records import DeviceInfo, LaunchSpec
from autotune.hardware.architectures import MAX_CLUSTER, extent_limits

_CUDA_BACKENDS = ("cuda", "pycuda")


def device_limits(
    plan: Sequence[LaunchSpec], device: DeviceInfo, computed: Container[str] = ()
) -> tuple[Expression, ...]:
    """The conditions under which a device accepts every launch of a plan.

    A condition that reads one of the `computed` names, which come from Python functions, is left out: the
    device checks it at the launch.
    """
    texts = (
        f"not ({step.when}) or {text}" if step.when != "True" else text
        for step in plan
        for text in _limits(step, device)
    )
    limits = (parse(text) for text in dict.fromkeys(texts))
    return tuple(limit for limit in limits if not any(name in computed for name in limit.names))


def _limits(step: LaunchSpec, device: DeviceInfo) -> Iterator[str]:
    threads = " * ".join(_operand(text) for text in step.block)
    yield f"{threads} <= device.max_threads_per_block"
    if step.shared_bytes != "0":
        yield f"{_operand(step.shared_bytes)} <= device.shared_bytes_per_block"
    needs_cuda = [text for text in (step.stream, step.cooperative, step.programmatic) if text]
    if device.backend == "opencl":
        yield from (f"not {_operand(text)}" for text in needs_cuda)
        yield from (f"{_operand(text)} == 1" for text in step.cluster)
    if step.cluster:
        yield f"{' * '.join(map(_operand, step.cluster))} <= {MAX_CLUSTER}"
        for blocks, cluster in zip_longest(step.grid, step.cluster, fillvalue="1"):
            yield f"{_operand(blocks)} % {_operand(cluster)} == 0"
    if device.backend in _CUDA_BACKENDS:
        yield from (f"{_operand(text)} <= {limit}" for _, text, limit in extent_limits(step))


def _operand(text: str) -> str:
    return text if text.isalnum() or text.isidentifier() else f"({text})"
