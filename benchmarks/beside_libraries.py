"""What benchmarks of single kernels share: a tuned plan of launches and libraries, in turns, in one process.

Needs an NVIDIA GPU, PyTorch and CuPy. The plan is compiled by autotune's own compiler. Before every sample a
buffer of four times the L2 is read; a sample is the time between two events on one stream around everything a
contender launches. Contenders take turns, so that none always follows the same neighbour.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import cupy
import numpy as np
import torch
from cuda.bindings import driver

from autotune import best_config
from autotune.compilers.nvrtc import CudaCompiler
from autotune.compilers.source_text import read_source, render
from autotune.core.argument_values import arguments
from autotune.core.records import Config
from autotune.devices import backend
from autotune.space import ValidSpace, bind, load_space, problem_of
from autotune.tuning.task import find_space_file

ROUNDS = 40
_SHARED_LIMIT = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def parser(description: str, **sizes: int) -> argparse.ArgumentParser:
    """The options that all of these benchmarks have, with one for each size."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--cache", help="the cache with the tuned result (default: as best_config)")
    made.add_argument("--config", help="run this configuration instead: 'NAME=VALUE NAME=VALUE ...'")
    for name, size in sizes.items():
        made.add_argument(f"--{name}", type=int, default=size)
    return made


def task(kernel: str, sizes: Mapping[str, int]) -> ValidSpace:
    """The kernel's space on the first CUDA device."""
    spec = load_space(find_space_file(Path(kernel)))
    device = backend("cuda").list_devices()[0]
    return bind(spec, device, problem_of(spec, device, sizes))


def cached(space: ValidSpace, cache: str | None) -> Config:
    """What the cache serves for the space's problem on this device."""
    best = best_config(space.spec.kernel, space.device, cache=cache, **space.problem.sizes)  # type: ignore[arg-type]
    print(f"{best.match.tier.value}: {best.config}")
    return best.config


def written(space: ValidSpace, text: str) -> Config:
    """A configuration in the words of `--config`; what is left out is taken from the default."""
    values = dict(space.spec.default)
    for pair in text.split():
        name, _, value = pair.partition("=")
        known = {
            str(one): one
            for parameter in space.parameters
            if parameter.name == name
            for one in parameter.values
        }
        if value not in known:
            raise SystemExit(f"--config {pair}: expected one of {', '.join(known) or list(values)}")
        values[name] = known[value]
    config = Config(values)
    if reasons := space.why_invalid(config):
        raise SystemExit(f"--config: {'; '.join(reasons)}")
    return config


def plan(space: ValidSpace, config: Config, arrays: dict[str, cupy.ndarray]) -> Callable[[], None]:
    """A callable that runs a configuration's launches; arrays that are not given are added to `arrays`."""
    device, problem = space.device, space.problem
    source = render(read_source(space.spec.source, space.spec.include_dirs), space.macros(config))
    binary = CudaCompiler(device.architecture).compile(source, space.options(config, "cuda"))
    module = cupy.cuda.function.Module()
    module.load(binary.data)
    values: dict[str, np.generic | cupy.ndarray] = {}
    for argument in arguments(space.spec.arguments, space.values(config), problem.dtype):
        if argument.value is not None:
            values[argument.name] = np.dtype(argument.dtype).type(argument.value)
        else:
            made = arrays.get(argument.name)
            values[argument.name] = cupy.zeros(argument.shape, argument.dtype) if made is None else made
            arrays[argument.name] = values[argument.name]
    steps = [
        (
            module.get_function(step.entry),
            step.grid,
            step.block,
            tuple(values[name] for name in step.arguments),
            step.shared_bytes,
        )
        for step in space.launches(config)
    ]
    for kernel, *_, shared_bytes in steps:
        cupy.cuda.driver.funcSetAttribute(kernel.ptr, int(_SHARED_LIMIT), shared_bytes)

    def run() -> None:
        for kernel, grid, block, given, shared_bytes in steps:
            kernel(grid, block, given, shared_bytes)

    return run


def take_turns(contenders: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Median time of each in ms."""
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    flush = cupy.zeros(properties["l2CacheSize"], np.int32)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    stream = cupy.cuda.Stream(non_blocking=True)  # all libraries on the one stream that is timed
    with stream, torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
        for turn in range(ROUNDS):
            first = turn % len(contenders)
            names = list(contenders)
            for name in names[first:] + names[:first]:
                flush.max()
                start, end = cupy.cuda.Event(), cupy.cuda.Event()
                start.record(stream)
                contenders[name]()
                end.record(stream)
                end.synchronize()
                times[name].append(cupy.cuda.get_elapsed_time(start, end))
    print(f"{properties['name'].decode()}, {ROUNDS} rounds in turns, medians")
    return {name: median(samples) for name, samples in times.items()}


def show(times_ms: Mapping[str, float], amounts: Mapping[str, int], unit: str = "GB/s") -> None:
    """A line per contender: its time, the rate of its amount, and the first one's rate over its own."""
    rates = {name: amounts[name] / time_ms * 1e-6 for name, time_ms in times_ms.items()}
    first = next(iter(rates.values()))
    for name, time_ms in times_ms.items():
        rate = f"{rates[name]:10.0f} {unit}{first / rates[name]:9.3f} times its rate"
        print(f"{name:24}{time_ms:10.4f} ms{rate}")
