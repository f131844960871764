"""A sweep's variants: how they are chosen, what is served between the sizes, and what that may cost."""

from dataclasses import replace
from math import log2
from random import Random

import pytest

from autotune import best_config
from autotune.analysis.merge import merge_records
from autotune.core.records import Config, Tier, VariantTable
from autotune.errors import NoConfig
from autotune.plans.variants import cover, left_out_slowdowns
from autotune.serving import cache
from autotune.serving.interpolation import SizeRow, in_order
from tests.cache_example import DEFAULT, DEVICE, entry, record
from tests.cache_files import write

SWEPT = [4**power for power in range(5, 16)]
BETWEEN = [size + 1 for low in SWEPT[:-1] for size in (round(1.4 * low), 2 * low)][:19]


def time_ms(config, n):
    """A model of a kernel: large blocks delay small problems, vectors save bandwidth in large ones."""
    blocks = n / (config["BLOCK"] * config["VECTOR"])
    waves = max(1.0, blocks / 2048)
    launch = 0.002 + 0.0005 * log2(config["BLOCK"])
    wide = 1.0 + 0.3 / config["VECTOR"]
    return launch + waves * 0.001 * wide + n * 4e-9 * (1 + (config["VECTOR"] - 2) ** 2 / 50 * (n < 2**24))


CONFIGS = [
    Config({**DEFAULT, "BLOCK": block, "VECTOR": vector})
    for block in (32, 64, 128, 256)
    for vector in (1, 2, 4)
]


def row(n, configs=CONFIGS, noise=0.0, seed=0):
    draw = Random(f"{n} {seed}")
    times = {config: time_ms(config, n) * (1 + draw.uniform(-noise, noise)) for config in configs}
    least = min(times.values())
    return SizeRow({"n": n}, {config: time / least for config, time in times.items()})


def once(config, sizes):
    """The launches of a configuration that are the same at all sizes."""
    return ()


class Kernel:
    """What tells where configurations are valid, and which launches they have."""

    def __init__(self, launched=once, is_valid=lambda config, sizes: True):
        self.launched, self.is_valid = launched, is_valid


SAME = Kernel()


def test_each_variant_lowers_the_loss_and_none_is_kept_that_does_not():
    a, b, c = CONFIGS[:3]
    rows = [
        SizeRow({"n": 1}, {a: 1.0, b: 1.2, c: 1.004}),
        SizeRow({"n": 2}, {a: 2.0, b: 1.2, c: 1.1}),
        SizeRow({"n": 3}, {a: 3.0, b: 1.0}),  # c failed, and so is slower than the slowest
    ]
    assert cover(rows, 8) == [b, c]  # a gains 0.4% at one size
    assert cover(rows, 1) == [b]
    assert cover([SizeRow({"n": 1}, {a: 1.0}), SizeRow({"n": 2}, {a: 9.0, b: 1.0})], 8) == [
        b,
        a,
    ]  # b is not for n=1


def test_one_that_is_never_the_best_is_a_variant_if_it_loses_least_half_way():
    small, between, large = CONFIGS[:3]
    times = (
        {small: 1, between: 9, large: 3},
        {small: 1, between: 1.2, large: 3},
        {small: 3, between: 1.2, large: 1},
    )
    rows = [SizeRow({"n": n}, times[place]) for place, n in enumerate((16, 64, 256))]
    assert set(cover(rows, 8)) == {small, between, large}
    apart = [SizeRow({"n": n, "m": n}, times[place]) for place, n in enumerate((16, 64, 256))]
    assert set(cover(apart, 8)) == {small, large} and not cover([], 8)


def test_between_two_sizes_the_variant_with_the_lowest_interpolated_time_is_served():
    left, both, right = CONFIGS[:3]
    rows = [
        SizeRow({"n": 16}, {left: 1, both: 1.1, right: 2}),
        SizeRow({"n": 64}, {left: 2, both: 1.1, right: 1}),
    ]
    served = {n: in_order(rows, CONFIGS[:3], {"n": n}, SAME)[:1] for n in (15, 16, 17, 32, 63, 65)}
    assert served == {15: [], 16: [left], 17: [left], 32: [both], 63: [right], 65: []}
    grid = [SizeRow({"m": m, "n": n}, {left: 1 + m * n, right: 9}) for m in (1, 4) for n in (1, 4)]
    assert [in_order(grid, [left, right], {"m": m, "n": 2}, SAME)[0] for m in (1, 2, 4)] == [
        left,
        left,
        right,
    ]
    assert in_order(grid[:3], [left, right], {"m": 4, "n": 4}, SAME) == []  # that corner failed


def test_a_time_with_other_launches_says_nothing_of_a_size():
    small, large, _ = CONFIGS[:3]
    rows = [SizeRow({"n": 16}, {small: 1, large: 1.2}), SizeRow({"n": 64}, {small: 1.5, large: 1})]

    def served(n, launched):
        return in_order(rows, [small, large], {"n": n}, Kernel(launched))[0]

    def second(config, sizes):  # beyond 16, `small` needs a second launch
        return (True, config == small and sizes["n"] > 16)

    assert [served(17, once), served(17, second), served(16, second)] == [small, large, small]
    assert served(17, lambda _, sizes: sizes) == small  # no size is like another one


def test_a_size_at_which_a_variant_is_not_valid_says_nothing_of_it():
    even, other, _ = CONFIGS[:3]
    rows = [
        SizeRow({"n": 16}, {even: 1.0, other: 1.1}),
        SizeRow({"n": 31}, {other: 1.0}, 1.2),
        SizeRow({"n": 64}, {even: 1.0, other: 1.1}),
    ]
    kernel = Kernel(is_valid=lambda config, sizes: config != even or sizes["n"] % 2 == 0)
    assert in_order(rows, [even, other], {"n": 30}, kernel)[0] == even
    assert in_order(rows, [even, other], {"n": 30}, Kernel())[0] == other  # valid there, and slow


def test_what_only_an_earlier_search_proposed_takes_part_in_leaving_out():
    own, earlier, _ = CONFIGS[:3]
    rows = [
        SizeRow({"n": 1}, {own: 1.0, earlier: 2.0}),
        SizeRow({"n": 2}, {earlier: 1.0}),
        SizeRow({"n": 4}, {own: 1.0}),
    ]
    found_at = {own: [{"n": 1}, {"n": 4}]}
    assert left_out_slowdowns(rows, [], found_at, 4, SAME) == (1.0,)


def test_sizes_left_out_cost_less_than_expected(tmp_path):
    rows = [row(n, noise=0.01) for n in SWEPT]
    found_at = {config: [{"n": n} for n in SWEPT] for config in CONFIGS}
    table = VariantTable(
        "int32",
        tuple(one.sizes for one in rows),
        tuple(cover(rows, 4)),
        left_out_slowdowns(rows, [], found_at, 4, SAME),
    )
    assert len(table.left_out) == len(SWEPT) - 2
    results = [
        replace(
            entry(one.sizes["n"]),
            config=min(one.relative_times, key=one.relative_times.get),
            time_ms=1.0,
            measured=tuple(one.relative_times.items()),
        )
        for one in rows
    ]
    write(tmp_path, DEVICE, replace(record(*results), variants=(table,), constraints=()))
    losses, covered = [], 0
    for n in BETWEEN:
        best = best_config("reduce", DEVICE, n=n, cache=tmp_path)
        assert best.match.tier is Tier.INTERPOLATED and best.config in table.configs
        losses.append(row(n).relative_times[best.config])
        covered += losses[-1] <= best.slowdown_at_most
    assert sum(loss <= 1.05 for loss in losses) >= 17 and covered >= 17 and best.slowdown_at_most < 1.2


@pytest.fixture
def swept(tmp_path):
    """Two sizes with a table of two variants, the faster of which is valid for even sizes only."""
    fast, safe = (Config({**DEFAULT, "VECTOR": vector}) for vector in (2, 1))
    times = ((fast, 1.0), (safe, 1.5))
    entries = [replace(entry(n, VECTOR=4), time_ms=1.0, measured=times) for n in (64, 256)]
    table = VariantTable("int32", ({"n": 64}, {"n": 256}), (fast, safe), (1.1, 1.2))
    write(tmp_path, DEVICE, replace(record(*entries), variants=(table,)))
    return tmp_path


def test_a_variant_that_is_not_valid_for_the_size_gives_way_to_the_next(swept):
    even, odd = (best_config("reduce", DEVICE, n=n, cache=swept) for n in (100, 101))
    assert (even["VECTOR"], odd["VECTOR"], odd.match.source_sizes) == (2, 1, {"n": 64})
    assert even.match.tier is odd.match.tier is Tier.INTERPOLATED and odd.time_ms == 1.5
    assert (
        "one of 2 variants for 2 sizes, tuned on example-gpu-100; n=101 lies between these"
        in odd.match.detail
    )
    assert 1.0 < even.expected_slowdown < 1.2 < even.slowdown_at_most < 3


def test_a_time_half_way_decides_between_variants_that_are_alike_at_the_sizes(swept):
    known = cache.read_record(cache.record_path(str(swept), DEVICE.slug, "reduce"))
    (table,) = known.variants
    known = replace(known, launch=tuple(replace(step, when="True") for step in known.launch))
    served = {}
    for times in ((1.5, 1.0), (None, 1.0), (None, None)):
        halfway = (({"n": 128}, times),)
        write(swept, DEVICE, replace(known, variants=(replace(table, halfway=halfway),)))
        found = (best_config("reduce", DEVICE, n=n, cache=swept) for n in (66, 100, 128, 160, 254))
        served[times] = [one["VECTOR"] for one in found]
    fast, safe = 2, 1
    assert served[1.5, 1.0] == [fast, safe, safe, safe, fast]
    assert served[None, 1.0] == [fast, fast, safe, fast, fast]
    assert served[None, None] == [fast] * 5


def test_the_only_variant_of_a_sweep_is_called_so(swept):
    known = cache.read_record(cache.record_path(str(swept), DEVICE.slug, "reduce"))
    (table,) = known.variants
    write(swept, DEVICE, replace(known, variants=(replace(table, configs=table.configs[1:]),)))
    found = best_config("reduce", DEVICE, n=100, cache=swept)
    assert found.match.detail.startswith("the only variant for 2 sizes, tuned on example-gpu-100; n=100 lies")


@pytest.mark.parametrize(("n", "tier"), [(64, Tier.EXACT), (60, Tier.NEAREST_SIZE), (260, Tier.NEAREST_SIZE)])
def test_sizes_that_were_swept_and_those_beyond_have_other_tiers(swept, n, tier):
    assert best_config("reduce", DEVICE, n=n, cache=swept).match.tier is tier


def test_a_closer_match_or_another_type_may_be_asked_for(swept):
    with pytest.raises(NoConfig):
        best_config("reduce", DEVICE, n=100, strict=True, cache=swept)
    other = best_config("reduce", DEVICE, n=100, dtype="float32", cache=swept)
    assert other.match.tier is Tier.DEFAULT


def test_a_later_sweep_of_the_same_range_replaces_the_table_and_others_stay(swept):
    (old,) = cache.read_record(cache.record_path(str(swept), DEVICE.slug, "reduce")).variants
    longer = replace(old, sizes=(*old.sizes, {"n": 1024}), left_out=(1.0,))
    other = replace(old, dtype="float32")
    path = cache.store(swept, DEVICE, replace(record(), variants=(longer, other)))
    assert cache.read_record(str(path)).variants == (other, longer)
    assert merge_records([replace(record(), variants=(one,)) for one in (old, other)]).variants == (
        other,
        old,
    )
