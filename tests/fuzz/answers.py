"""Random caches for `best_config`, and what an answer must never be.

The plans have grids, blocks, shared memory, repetitions and conditions that are 0 or cannot be evaluated for
some configurations and sizes. An answer is evaluated by Python itself, not by the project's own expressions,
and launched on the fake device.
"""

import math
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from autotune.core.records import (
    ArgumentSpec,
    Config,
    DeviceInfo,
    Entry,
    KernelRecord,
    LaunchSpec,
    Parameter,
    VariantTable,
)
from autotune.devices.fake import FakeCompiler, FakeDevice, list_devices
from autotune.errors import NoConfig
from autotune.serving.best import Best
from autotune.serving.lookup import best_config
from tests.cache_example import PROVENANCE
from tests.cache_files import write

DOMAINS = {"BLOCK": (1, 32, 64, 256, 1024), "PER": (0, 1, 4, 8), "SPLIT": (False, True)}
DERIVED = {"TILE": "BLOCK * PER", "CHUNK": "n // 64", "PARTS": "ceil_div(n, max(TILE, 1))"}
CONSTRAINTS = ("n % 2 == 0 or not SPLIT", "TILE <= 4096", "PER > 0 or SPLIT", "BLOCK >= device.warp_size")
GRIDS = (
    "ceil_div(n, TILE)",
    "n // TILE",
    "n // (BLOCK * 4)",
    "PARTS",
    "ceil_div(n, CHUNK)",
    "n - 100",
    "TILE",
)
ROWS = ("1", "n", "n // 2", "PER", "n - BLOCK", "min(n, 65_535)")
BLOCKS = ("BLOCK", "BLOCK // 32", "ceil_div(BLOCK, 2)", "min(BLOCK, n)", "256 // PER")
DEPTHS = ("1", "PER", "BLOCK", "n // 100")
SHARED = ("0", "4 * TILE", "64 * BLOCK", "n - 64", "4096 // CHUNK")
WHENS = ("True", "SPLIT", "PARTS > 1", "n % PER == 0")
REPEATS = ("", "ceil(log2(n))", "PER", "n // 512")
SIZES = (1, 2, 3, 7, 31, 64, 100, 1000, 4096, 65_536, 10**6, 10**10)
SOURCE = """
def first(grid, block, x, n):
    assert min(*grid, *block) >= 1
    return 1.0

def second(grid, block, x, n):
    return first(grid, block, x, n)
"""


def ask(random_: random.Random, questions: int = 3) -> int:
    """Fill a cache in the current folder and ask; return the number of answers."""
    root = Path("cache")
    devices = [_device(random_, number) for number in range(random_.randint(1, 3))]
    plan, constraints = _plan(random_), tuple(random_.sample(CONSTRAINTS, random_.randint(0, 2)))
    for device in devices:
        write(root, device, _record(random_, plan, constraints))
    stranger, answers = _device(random_, len(devices)), 0
    for _ in range(questions):
        n, device = random_.choice(SIZES) + random_.randint(0, 1), random_.choice([*devices, stranger])
        try:
            best = best_config("fuzzed", device, n=n, cache=root)
        except NoConfig:
            continue
        answers += 1
        _require_runs(best, n)
    return answers


def _device(random_: random.Random, number: int) -> DeviceInfo:
    vendor, architecture = random_.choice((("NVIDIA", "sm_90"), ("NVIDIA", "sm_80"), ("AMD", "gfx90a")))
    return replace(
        list_devices()[0],
        backend=random_.choice(("fake", "cuda", "opencl")) if vendor == "NVIDIA" else "opencl",
        name=f"Device {number}",
        slug=f"device-{number}",
        vendor=vendor,
        architecture=architecture,
        max_threads_per_block=random_.choice((64, 256, 1024)),
        shared_bytes_per_block=random_.choice((512, 49_152)),
    )


def _plan(random_: random.Random) -> tuple[LaunchSpec, ...]:
    def step(entry: str) -> LaunchSpec:
        grid = [random_.choice(GRIDS), random_.choice(ROWS)][: random_.randint(1, 2)]
        block = [random_.choice(BLOCKS), "1", random_.choice(DEPTHS)][: random_.choice((1, 3))]
        shared, when, repeat = (random_.choice(texts) for texts in (SHARED, WHENS, REPEATS))
        return LaunchSpec(entry, tuple(grid), tuple(block), ("x", "n"), shared, when, repeat)

    return tuple(step(entry) for entry in ("first", "second")[: random_.randint(1, 2)])


def _record(
    random_: random.Random, plan: tuple[LaunchSpec, ...], constraints: tuple[str, ...]
) -> KernelRecord:
    def config() -> Config:
        return Config({name: random_.choice(values) for name, values in DOMAINS.items()})

    entries = []
    for n in random_.sample(SIZES, random_.randint(1, 4)):
        measured = {config(): random_.uniform(1, 9) for _ in range(random_.randint(1, 5))}
        (best, time_ms), *others = sorted(measured.items(), key=lambda item: item[1])
        interval = (time_ms, time_ms)
        entries.append(
            Entry({"n": n}, "float32", best, time_ms, interval, None, (), PROVENANCE, tuple(others))
        )
    swept = tuple(entry.sizes for entry in entries)
    chosen = {config: None for entry in entries for config in entry.relative_times}
    tables = (
        (VariantTable("float32", swept, tuple(chosen)[:4], (1.1, 1.2)),) if random_.random() < 0.5 else ()
    )
    return KernelRecord(
        kernel="fuzzed",
        dtypes=("float32",),
        parameters=tuple(Parameter(name, values) for name, values in DOMAINS.items()),
        constraints=constraints,
        derived=DERIVED,
        compiler_options={},
        arguments=(
            ArgumentSpec("x", "float32", "in", ("1",)),
            ArgumentSpec("n", "int64", "scalar", value="n"),
        ),
        launch=plan,
        default=config(),
        entries=tuple(entries),
        variants=tables,
    )


def _require_runs(best: Best, n: int) -> None:
    """Launch an answer on the fake device, and compare its launches with what Python makes of the plan."""
    launched = best.launch(n=n)
    expected = _evaluated(best, n)
    found = [(one.entry, one.grid, one.block, one.shared_bytes) for one in launched]
    assert found == expected, (best, n, found, expected)
    defines = "".join(f"{name} = {value!r}\n" for name, value in best.defines.items())
    device = FakeDevice()
    program = device.load(FakeCompiler().compile(defines + SOURCE, ()))
    assert device.run(program, launched, {"x": device.allocate(4), "n": n}) == len(expected) > 0


def _evaluated(best: Best, n: int) -> list[tuple[str, tuple[int, ...], tuple[int, ...], int]]:
    device = best.device
    assert device is not None
    names = {
        "ceil_div": lambda a, b: -(-a // b),
        "ceil": math.ceil,
        "log2": math.log2,
        "min": min,
        "max": max,
        "n": n,
        "device": SimpleNamespace(warp_size=device.warp_size),
        **best.config,
    }

    def value(text: str) -> int:
        return eval(text, {"__builtins__": {}}, names)

    for name, text in DERIVED.items():
        names[name] = value(text)
    assert all(value(text) for text in best.record.constraints), (best, n)
    found = []
    for step in best.record.launch:
        if not value(step.when):
            continue
        grid, block = ([*map(value, texts), 1, 1][:3] for texts in (step.grid, step.block))
        shared_bytes = value(step.shared_bytes)
        assert min(*grid, *block) >= 1, (best, n, grid, block)
        assert math.prod(block) <= device.max_threads_per_block, (best, n, block)
        assert 0 <= shared_bytes <= device.shared_bytes_per_block, (best, n, shared_bytes)
        if device.backend != "opencl":
            assert block[2] <= 64 and grid[0] < 2**31 and max(grid[1:]) <= 65_535, (best, n, grid, block)
        count = value(step.repeat) if step.repeat else 1
        assert 0 <= count <= 10_000, (best, n, count)
        found += [(step.entry, tuple(grid), tuple(block), shared_bytes)] * count
    return found
