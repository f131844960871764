"""Over random caches and devices: nothing is served that the kernel or the device forbids."""

from dataclasses import replace
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from autotune.core.expressions import parse
from autotune.core.launch_plan import known_values
from autotune.core.records import Config, KernelRecord, Tier
from autotune.errors import NoConfig
from autotune.serving.lookup import best_config
from autotune.serving.validity import KernelOnDevice
from tests.cache_example import DEVICE, entry, record
from tests.cache_files import write

VENDORS = {"NVIDIA": ("sm_80", "sm_90"), "AMD": ("gfx90a",)}
CONFIGS = st.fixed_dictionaries(
    {
        "ALGORITHM": st.sampled_from(("tree", "shuffle")),
        "BLOCK": st.sampled_from((32, 64, 128, 256, 512)),  # 512 is no value of the parameter
        "VECTOR": st.sampled_from((1, 2, 4)),
        "UNROLL": st.booleans(),
    }
).map(Config)
CONSTRAINTS = (
    "BLOCK <= device.max_threads_per_block",
    'ALGORITHM != "shuffle" or device.has_shuffle',
    "n % VECTOR == 0",
    "not UNROLL or VECTOR > 1",
)


@st.composite
def devices(draw, number: int):
    """A GPU or CPU with limits that forbid some configurations."""
    vendor = draw(st.sampled_from(sorted(VENDORS)))
    return replace(
        DEVICE,
        name=f"Device {number}",
        slug=f"device-{number}",
        kind=draw(st.sampled_from(("gpu", "gpu", "cpu"))),
        vendor=vendor,
        architecture=draw(st.sampled_from(VENDORS[vendor])),
        max_threads_per_block=draw(st.sampled_from((16, 64, 256, 1024))),
        shared_bytes_per_block=draw(st.sampled_from((128, 512, 49_152))),
        has_shuffle=draw(st.booleans()),
    )


@st.composite
def records(draw):
    """Results whose constraints are some of those above: a limit of the device may be in none of them."""
    entries = {}
    for n in draw(st.lists(st.integers(1, 4096), min_size=1, max_size=3, unique=True)):
        measured = draw(st.dictionaries(CONFIGS, st.floats(0.5, 9), max_size=4))
        entries[n] = replace(entry(n), config=draw(CONFIGS), time_ms=1.0, measured=tuple(measured.items()))
    kept = draw(st.sets(st.sampled_from(CONSTRAINTS)))
    return replace(record(*entries.values(), default=draw(CONFIGS)), constraints=tuple(sorted(kept)))


@st.composite
def caches(draw):
    """Devices with their results, and one device more."""
    count = draw(st.integers(1, 4))
    return [(draw(devices(number)), draw(records())) for number in range(count)], draw(devices(count))


def forbidden(best, n: int) -> list[str]:
    """What the configuration violates, found without the loader's own check."""
    held: KernelRecord = best.record
    values = known_values(best.device, {"n": n}, best.dtype, best.config, held.derived)
    wrong = [text for text in held.constraints if not parse(text)(values)]
    wrong += [p.name for p in held.parameters if best[p.name] not in p.values]
    for launch in best.launch(n=n):
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        wrong += ["threads"] * (threads > best.device.max_threads_per_block)
        wrong += ["shared memory"] * (launch.shared_bytes > best.device.shared_bytes_per_block)
    return wrong


@given(caches(), st.integers(1, 4096), st.booleans(), st.sampled_from(Tier))
def test_nothing_forbidden_is_served_and_nothing_closer_is_passed_over(
    tmp_path_factory, filled, n, absent, least
):
    held, stranger = filled
    root = tmp_path_factory.mktemp("cache")
    for device, results in held:
        write(root, device, results)
    target = stranger if absent else held[0][0]
    try:
        best = best_config("reduce", target, n=n, cache=root, min_match=least)
    except NoConfig:
        own = [] if absent else [one for one in held[0][1].entries if one.sizes == {"n": n}]
        kernel = KernelOnDevice(held[0][1], target, "int32")
        assert all(kernel.check(one.config, {"n": n}).violations for one in own)
        return
    assert forbidden(best, n) == []
    assert best.match.tier.reaches(least)
    assert 1 <= (best.expected_slowdown or 1) <= (best.slowdown_at_most or inf)
    source = next((device for device, _ in held if device.slug == best.source_device), None)
    assert (source is None) == (best.match.tier is Tier.DEFAULT)
    if source is not None and best.match.tier in (Tier.EXACT, Tier.NEAREST_SIZE):
        assert source == target
    elif source is not None:
        assert source.kind == target.kind
        assert (source.vendor == target.vendor) == (best.match.tier is not Tier.PORTABLE) or any(
            best.kernel.check(config, {"n": n}).violations
            for device, results in held
            if device.vendor == target.vendor
            for one in results.entries
            for config in one.relative_times
        )
