"""What is served to a device that has no results of its own."""

import json
import pickle
import threading
from dataclasses import replace

import pytest

from autotune.core.records import Config, LaunchSpec, Parameter, Tier
from autotune.errors import CacheError, InputError, NoConfig
from autotune.serving import cache
from autotune.serving.lookup import best_config
from autotune.serving.miss_log import CacheMiss, forget_miss, read_misses
from tests.cache_example import DEFAULT, DEVICE, PROVENANCE, entry, record

HOPPER = replace(DEVICE, name="NVIDIA H200", slug="nvidia-h200", vendor="NVIDIA", architecture="sm_90")
AMPERE = replace(HOPPER, name="NVIDIA A100", slug="nvidia-a100", architecture="sm_80")
INSTINCT = replace(DEVICE, name="Instinct MI210", slug="mi210", vendor="AMD", architecture="gfx90a")
NEW_HOPPER = replace(HOPPER, name="NVIDIA H100 PCIe", slug="nvidia-h100-pcie")
VOLTA = replace(HOPPER, name="NVIDIA V100", slug="nvidia-v100", architecture="sm_70")
ARC = replace(DEVICE, name="Arc", slug="arc", vendor="Intel", architecture="xe")


def config(**values) -> Config:
    return Config({**DEFAULT, **values})


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Three GPUs, of which each knows how the bests of the others do on it."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    best = {HOPPER: config(BLOCK=256), AMPERE: config(BLOCK=128), INSTINCT: config(BLOCK=32, VECTOR=4)}
    factors = {HOPPER: (1.0, 1.2, 3.0), AMPERE: (1.5, 1.0, 4.0), INSTINCT: (2.0, 1.3, 1.0)}
    for device, own in best.items():
        for n in (64, 4096):
            times = dict(zip(best.values(), factors[device], strict=True))
            times |= {DEFAULT: 8.0}
            measured = tuple((each, factor * n) for each, factor in times.items() if each != own)
            found = replace(entry(n), config=own, time_ms=1.0 * n, default_time_ms=8.0 * n, measured=measured)
            cache.store(tmp_path, device, record(found))
    return tmp_path


@pytest.mark.parametrize(
    ("device", "tier", "source", "block"),
    [
        (HOPPER, Tier.EXACT, "nvidia-h200", 256),
        (NEW_HOPPER, Tier.SAME_ARCHITECTURE, "nvidia-h200", 256),
        ("NVIDIA H100 PCIe", Tier.SAME_ARCHITECTURE, "nvidia-h200", 256),
        (VOLTA, Tier.SAME_VENDOR, "nvidia-a100", 128),  # at worst 1.2 times the best of its vendor's
        ("Tesla V100-SXM2-16GB", Tier.SAME_VENDOR, "nvidia-a100", 128),
        ("Instinct MI300X", Tier.SAME_VENDOR, "mi210", 32),
        (ARC, Tier.PORTABLE, "nvidia-a100", 128),  # at worst 1.3 times the best of all
        ("some GPU", Tier.PORTABLE, "nvidia-a100", 128),
    ],
)
def test_the_closest_devices_decide_and_the_least_worst_of_their_configurations(
    root, device, tier, source, block
):
    best = best_config("reduce", device, n=64)
    assert (best.match.tier, best.source_device, best["BLOCK"]) == (tier, source, block)
    assert best.match.source_sizes == {"n": 64} and best.match.distance == 0
    assert best.device == (None if isinstance(device, str) else device)
    assert best.time_ms == 64


def test_each_device_is_asked_for_its_nearest_size(root):
    match = best_config("reduce", ARC, n=2048).match
    assert (match.source_sizes, match.distance) == ({"n": 4096}, 1.0)
    assert (
        match.detail
        == "tuned on nvidia-a100 for n=4096, the smallest worst-case slowdown over all known devices"
    )


def test_what_the_device_cannot_run_is_passed_over_within_a_tier(root):
    best = best_config("reduce", replace(NEW_HOPPER, max_threads_per_block=128), n=64)
    assert (best.match.tier, best["BLOCK"], best.time_ms) == (Tier.SAME_ARCHITECTURE, 128, 1.2 * 64)
    assert best.match.detail.endswith(
        "a device of the same architecture, where it takes 1.2 times as long as the best"
    )
    best = best_config("reduce", replace(NEW_HOPPER, max_threads_per_block=32), n=64)
    assert (best["BLOCK"], best["VECTOR"]) == (32, 4)


def test_a_configuration_that_ties_with_the_best_is_as_fast(root):
    path = root / HOPPER.slug / "reduce.json"
    data = json.loads(path.read_text())
    for found in data["entries"]:
        found["measured"] = [[{**DEFAULT, "BLOCK": 128}, 1.001 * found["time_ms"]]]
    path.write_text(json.dumps(data))
    match = best_config("reduce", replace(NEW_HOPPER, max_threads_per_block=128), n=64).match
    assert match.detail.endswith("a device of the same architecture, where it is as fast as the best")


def test_a_size_that_a_configuration_is_not_valid_for_is_kept_in_mind(root):
    assert best_config("reduce", "Instinct MI300X", n=63).config == config(BLOCK=128)


def test_the_threads_and_the_shared_memory_of_the_launches_are_limited_without_any_constraint(root):
    for device in (HOPPER, AMPERE, INSTINCT):
        path = root / device.slug / "reduce.json"
        data = json.loads(path.read_text()) | {"constraints": []}
        path.write_text(json.dumps(data))
    assert best_config("reduce", ARC, n=64)["BLOCK"] == 128
    assert best_config("reduce", replace(ARC, max_threads_per_block=64), n=64)["BLOCK"] == 32
    assert best_config("reduce", replace(ARC, shared_bytes_per_block=255), n=64)["BLOCK"] == 32
    with pytest.raises(NoConfig, match="main has 64 threads a block, the device allows 16"):
        best_config("reduce", replace(ARC, max_threads_per_block=16), n=64)
    with pytest.raises(NoConfig, match="main has 256 bytes of shared memory a block, the device allows 8"):
        best_config("reduce", replace(ARC, shared_bytes_per_block=8), n=64)
    own = best_config("reduce", replace(HOPPER, max_threads_per_block=128), n=64)
    assert own["BLOCK"] == 128 and own.match.tier is Tier.SAME_ARCHITECTURE


@pytest.mark.parametrize("grid", ["n // (2 * BLOCK)", "ceil_div(n, n // BLOCK // 2)"])
def test_a_grid_that_is_0_or_cannot_be_evaluated_is_never_served(root, grid):
    for device in (HOPPER, AMPERE, INSTINCT):
        path = root / device.slug / "reduce.json"
        data = json.loads(path.read_text())
        data["launch"][0]["grid"] = [grid]
        path.write_text(json.dumps(data))
    best = best_config("reduce", HOPPER, n=130)
    assert best["BLOCK"] == 64 and best.launch(n=130)
    with pytest.raises(
        NoConfig, match=r"\(like the kernel's default and \d more\) is not valid here: .*grid"
    ):
        best_config("reduce", HOPPER, n=60)


def test_a_configuration_that_launches_nothing_is_not_served(root):
    cache.store(
        root,
        HOPPER,
        replace(record(entry(64)), launch=(LaunchSpec("main", ("1",), ("1",), (), when="n < 5"),)),
    )
    with pytest.raises(NoConfig, match="nothing is launched, because no `when` holds"):
        best_config("reduce", HOPPER, n=64, strict=True)


def test_grids_and_deep_blocks_are_limited_on_cuda_only(root):
    for device in (HOPPER, AMPERE, INSTINCT):
        path = root / device.slug / "reduce.json"
        data = json.loads(path.read_text()) | {"constraints": []}
        data["launch"][0] |= {"grid": ["1", "n"], "block": ["1", "1", "BLOCK"]}
        path.write_text(json.dumps(data))
    on_opencl = replace(ARC, backend="opencl")
    assert best_config("reduce", on_opencl, n=2**20)["BLOCK"] == 128
    with pytest.raises(NoConfig, match="main has 256 threads in z, the device allows 64"):
        best_config("reduce", HOPPER, n=64, strict=True)
    with pytest.raises(NoConfig, match="main has 1048576 blocks in y, the device allows 65535"):
        best_config("reduce", AMPERE, n=2**20)


def test_registers_are_limited_where_the_compiler_told_them(root):
    hungry = (replace(entry(n, BLOCK=256), registers=128) for n in (64, 4096))
    cache.store(root, HOPPER, record(*hungry))
    assert best_config("reduce", replace(HOPPER, registers_per_block=16_384), n=64)["BLOCK"] != 256
    assert best_config("reduce", replace(HOPPER, registers_per_block=32_768), n=64)["BLOCK"] == 256
    with pytest.raises(NoConfig, match="main has 32768 registers a block, the device allows 16384"):
        best_config("reduce", replace(HOPPER, registers_per_block=16_384), n=64, strict=True)


def test_the_newest_result_says_what_the_kernel_is_now(root):
    later = replace(PROVENANCE, tuned_at="2026-01-01T00:00:00+00:00", source_sha256="7" * 64)
    grown = replace(
        record(entry(2**20, provenance=later, VECTOR=4)),
        constraints=("BLOCK != 128",),
    )
    cache.store(root, replace(INSTINCT, name="MI100", slug="mi100"), grown)
    best = best_config("reduce", VOLTA, n=64)
    assert best["BLOCK"] == 256 and best.record.constraints == ("BLOCK != 128",)
    assert best.stale_reasons == (
        f"the kernel source was {'5' * 12} when this was tuned and is {'7' * 12} now.",
    )
    grown = replace(grown, parameters=(*grown.parameters, Parameter("NEW", (1,))), default=Config({"NEW": 1}))
    cache.store(root, replace(INSTINCT, name="MI100", slug="mi100"), grown)
    with pytest.raises(NoConfig, match=r"every result of same_vendor.* is not valid here: it has "):
        best_config("reduce", VOLTA, n=64)


def test_a_tier_that_is_not_close_enough_is_refused(root):
    for least in (Tier.SAME_VENDOR, Tier.PORTABLE, Tier.DEFAULT):
        assert best_config("reduce", VOLTA, n=64, min_match=least).match.tier is Tier.SAME_VENDOR
    missing = r"nothing as close as same_architecture for nvidia-v100, int32, n=64; .* nvidia-a100 \("
    with pytest.raises(NoConfig, match=missing):
        best_config("reduce", VOLTA, n=64, min_match=Tier.SAME_ARCHITECTURE)
    with pytest.raises(NoConfig, match="nothing as close as nearest_size for nvidia-v100"):
        best_config("reduce", VOLTA, n=64, min_match=Tier.NEAREST_SIZE)
    assert best_config("reduce", HOPPER, n=65, min_match=Tier.NEAREST_SIZE).match.tier is Tier.NEAREST_SIZE
    with pytest.raises(NoConfig, match="nothing tuned for exactly nvidia-h200, int32, n=65"):
        best_config("reduce", HOPPER, n=65, min_match=Tier.EXACT)


def test_the_expected_slowdown_is_learnt_by_leaving_devices_and_sizes_out(root):
    exact = best_config("reduce", HOPPER, n=64)
    assert exact.expected_slowdown == exact.slowdown_at_most == 1
    vendor = best_config("reduce", VOLTA, n=64)
    assert [(one.factor, one.tier.value) for one in vendor.evidence()] == [
        (1.3, "portable"),
        (1.5, "same_vendor"),
        (1.2, "same_vendor"),
    ]
    assert 1.2 < vendor.expected_slowdown < 1.5 < vendor.slowdown_at_most
    portable = best_config("reduce", ARC, n=64)
    assert portable.evidence() == vendor.evidence()
    assert portable.slowdown_at_most is None  # one result tells too little
    sizes = best_config("reduce", HOPPER, n=128)
    assert [one.factor for one in sizes.evidence()] == [1.0, 1.0]  # the same best for both sizes
    assert 1 < sizes.expected_slowdown < sizes.slowdown_at_most < 1.3


@pytest.mark.parametrize(("device", "n"), [(HOPPER, 64), (HOPPER, 128), (VOLTA, 64), ("cpu-none", 64)])
def test_answers_of_every_tier_can_be_sent_to_another_process(root, device, n):
    best = best_config("reduce", device, n=n)
    there = pickle.loads(pickle.dumps(best))
    assert (there.config, there.match) == (best.config, best.match)
    assert there.slowdown_at_most == best.slowdown_at_most


def test_how_the_default_does_on_gpus_says_nothing_of_a_cpu(root):
    alone = best_config("reduce", "cpu-none", n=64)
    assert (alone.match.tier, alone.evidence(), alone.expected_slowdown) == (Tier.DEFAULT, [], None)


def test_without_sizes_there_must_be_only_one(root):
    with pytest.raises(InputError, match="give the sizes; mi210 has results for n=64 or n=4096"):
        best_config("reduce", ARC)


def test_other_devices_of_every_cache_count(root, tmp_path_factory, monkeypatch):
    far = tmp_path_factory.mktemp("far")
    cache.store(
        far, replace(VOLTA, name="NVIDIA TITAN V", slug="nvidia-titan-v"), record(entry(64, BLOCK=32))
    )
    monkeypatch.setattr("autotune.serving.lookup.read_roots", lambda _: (str(root), str(far)))
    best = best_config("reduce", VOLTA, n=64)
    assert (best.match.tier, best.source_device) == (Tier.SAME_ARCHITECTURE, "nvidia-titan-v")


def test_what_was_missed_is_noted_once_and_an_exact_answer_is_not(root):
    for _ in range(2):
        best_config("reduce", VOLTA, n=64, on_miss="record")
        best_config("reduce", HOPPER, n=64, on_miss="record")
        best_config("reduce", HOPPER, dtype="int32", n=100, on_miss="record")
    with pytest.raises(NoConfig):
        best_config("scan", "some GPU", n=64, m=1, strict=True, on_miss="record")
    assert read_misses(root) == [
        CacheMiss("reduce", "nvidia-v100", None, {"n": 64}),
        CacheMiss("reduce", "nvidia-h200", "int32", {"n": 100}),
        CacheMiss("scan", "some-gpu", None, {"n": 64, "m": 1}),
    ]
    assert cache.folders(str(root)) == ["mi210", "nvidia-a100", "nvidia-h200"]
    assert cache.kernels(str(root)) == ["reduce"]
    forget_miss(root, CacheMiss("reduce", "nvidia-h200", "int32", {"n": 100}))
    assert [wanted.kernel for wanted in read_misses(root)] == ["reduce", "scan"]


def test_many_threads_note_each_question_once(root):
    def ask(first: int) -> None:
        for n in range(1, 9):
            best_config("reduce", VOLTA, n=n * first, on_miss="record")

    threads = [threading.Thread(target=ask, args=(first,)) for first in (3, 3, 5, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    noted = [wanted.sizes["n"] for wanted in read_misses(root)]
    assert sorted(noted) == sorted({n * first for n in range(1, 9) for first in (3, 5)})


@pytest.mark.parametrize("content", [b"\xff\n", b"[" * 100_000, b"{"])
def test_a_list_that_is_no_list_is_named_and_whoever_asks_is_answered(root, content):
    (root / "wanted.jsonl").write_bytes(content)
    with pytest.warns(UserWarning, match=r"could not record .* miss: .*wanted\.jsonl: damaged") as warned:
        assert best_config("reduce", VOLTA, n=64, on_miss="record")["BLOCK"] == 128
    (said,) = [one for one in warned if "could not record" in str(one.message)]  # others may come beside it
    assert said.filename == __file__


def test_a_last_line_without_an_end_is_a_line(root):
    (root / "wanted.jsonl").write_text(CacheMiss("scan", None, None, {"n": 1}).line.rstrip())
    best_config("reduce", VOLTA, n=64, on_miss="record")
    assert [wanted.kernel for wanted in read_misses(root)] == ["scan", "reduce"]


def test_a_list_that_cannot_be_read_or_changed_is_named(root):
    (root / "wanted.jsonl").mkdir()
    wanted = CacheMiss("reduce", None, None, {"n": 64})
    for ask in (lambda: read_misses(root), lambda: forget_miss(root, wanted)):
        with pytest.raises(CacheError, match=r"wanted\.jsonl: cannot be read: Is a directory"):
            ask()
    with pytest.raises(CacheError, match=r"nowhere/wanted\.jsonl: cannot be written: No such file"):
        forget_miss(root / "nowhere", wanted)


def test_a_list_that_cannot_be_written_is_a_warning_and_a_damaged_one_an_error(root):
    (root / "wanted.jsonl").write_text('{"kernel": "reduce"}\n')
    with pytest.warns(UserWarning, match="could not record the cache miss: .*wanted.jsonl: damaged"):
        best = best_config("reduce", VOLTA, n=64, on_miss="record")
    assert best["BLOCK"] == 128
    with pytest.raises(CacheError, match="delete it, or the damaged line"):
        read_misses(root)
