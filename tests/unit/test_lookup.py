"""Which configuration is served for which question, and what is said when there is none."""

import os
import re
from dataclasses import FrozenInstanceError, replace
from math import hypot, log2
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import autotune
from autotune.core.records import Config, Launch, LaunchSpec, Match, Sizes, Tier
from autotune.errors import CacheError, InputError, NoConfig
from autotune.hardware import host_cpu
from autotune.serving import cache
from autotune.serving.lookup import best_config
from autotune.serving.matching import match_own_results
from autotune.serving.query import Query
from autotune.serving.validity import KernelOnDevice
from tests.cache_example import DEFAULT, DEVICE, OTHER, PROVENANCE, entry, record

NAME = "Example GPU 100"


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch) -> Path:
    """The cache in force, with nothing in it yet; the current folder has none of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture
def filled(root) -> Path:
    """Three sizes on one device, one on another."""
    entries = (entry(64, BLOCK=32), entry(1024, BLOCK=128, VECTOR=4), entry(2**20, BLOCK=256, VECTOR=2))
    cache.store(root, DEVICE, record(*entries))
    cache.store(root, OTHER, record(entry(1024, BLOCK=32)))
    return root


def test_the_same_sizes_are_exact(filled):
    best = best_config("reduce", NAME, n=1024)
    assert best == {"ALGORITHM": "tree", "BLOCK": 128, "VECTOR": 4, "UNROLL": False}
    assert best.match == Match(
        Tier.EXACT, "example-gpu-100", {"n": 1024}, 0.0, "tuned on example-gpu-100 for n=1024"
    )
    assert (best.time_ms, best.provenance, best.source_device) == (1024 / 1e6, PROVENANCE, "example-gpu-100")
    assert best.dtype == "int32"


@pytest.mark.parametrize(
    ("n", "nearest"), [(65, 64), (260, 1024), (255, 64), (2**40, 2**20), (32_770, 2**20)]
)
def test_other_sizes_get_the_nearest_in_log_space(filled, n, nearest):
    match = best_config("reduce", NAME, n=n).match
    assert (match.tier, match.source_sizes) == (Tier.NEAREST_SIZE, {"n": nearest})
    assert match.distance == pytest.approx(abs(log2(n / nearest)))
    assert match.detail == f"tuned on example-gpu-100 for n={nearest}, the nearest to n={n}"


@settings(deadline=None)
@given(
    known=st.lists(
        st.tuples(st.integers(1, 2**40), st.integers(1, 2**40)), min_size=1, max_size=8, unique=True
    ),
    asked=st.tuples(st.integers(1, 2**40), st.integers(1, 2**40)),
)
def test_every_dimension_counts_and_not_the_volume(known, asked):
    def distance(one: Sizes) -> float:
        return hypot(log2(one["m"] / asked[0]), log2(one["n"] / asked[1]))

    entries = [replace(entry(1), sizes={"m": m, "n": n}) for m, n in known]
    query = Query("reduce", None, None, Tier.DEFAULT, {"m": asked[0], "n": asked[1]})
    best = match_own_results("example-gpu-100", record(*entries), DEVICE, query)
    assert distance(best.match.source_sizes) == pytest.approx(
        min(distance(each.sizes) for each in entries), abs=1e-9
    )


def test_a_nearest_result_that_is_not_valid_for_the_sizes_is_passed_over(filled):
    best = best_config("reduce", NAME, n=1023)  # VECTOR = 4 and 2 do not divide it
    assert best.match.source_sizes == {"n": 64}


def test_a_kind_of_device_without_results_gets_the_default(filled):
    best = best_config("reduce", "cpu-unknown", n=1024)
    assert best == DEFAULT
    assert (best.time_ms, best.provenance, best.source_device) == (None, None, None)
    assert best.match.tier is Tier.DEFAULT
    assert best.match.detail == (
        "the kernel's default, as no result can be served on cpu-unknown; "
        "not checked, as device or sizes are unknown: BLOCK <= device.max_threads_per_block"
    )
    assert best.slowdown_at_most is None  # ten times on each of two devices: too few to foretell a bound
    with pytest.raises(NoConfig, match="nothing as close as portable for cpu-unknown, int32, n=1024; "):
        best_config("reduce", "cpu-unknown", n=1024, min_match=Tier.PORTABLE)


def test_the_default_must_be_valid_for_a_known_device(filled):
    small = replace(DEVICE, name="Small", slug="small", kind="cpu", max_threads_per_block=32)
    with pytest.raises(
        NoConfig, match=r"default is not valid here: BLOCK <= device\.max_threads_per_block; .* has "
    ):
        best_config("reduce", small, n=1024)
    assert best_config("reduce", replace(small, max_threads_per_block=64), n=1024) == DEFAULT


def test_the_given_device_decides_what_is_valid(filled):
    limited = replace(DEVICE, max_threads_per_block=64)
    best = best_config("reduce", limited, n=1024)
    assert (best["BLOCK"], best.match.tier, best.match.source_sizes) == (32, Tier.NEAREST_SIZE, {"n": 64})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"constraints": ("BLOCK > 128",)}, "BLOCK > 128"),
        ({"parameters": record().parameters[:3]}, "it has UNROLL where the kernel now has nothing"),
        ({"derived": {"TILE": "1 // 0"}}, "1 // 0"),
    ],
)
def test_a_result_that_the_kernel_has_outgrown_is_not_served(root, changed, reason):
    cache.store(root, DEVICE, record(entry(64)))
    cache.store(root, DEVICE, replace(record(entry(1024, BLOCK=256)), **changed))
    with pytest.raises(NoConfig, match="the result for n=64 is not valid here") as caught:
        best_config("reduce", NAME, n=64, strict=True)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("others", "served"),
    [
        ((), "the kernel's default, "),
        ((entry(1024, BLOCK=128),), "tuned on example-gpu-100 for n=1024, the nearest valid one to n=64"),
        (
            (replace(entry(64, BLOCK=512), measured=((Config({**DEFAULT, "BLOCK": 128}), 1.0),)),),
            "tuned on example-gpu-100 for n=64, this device, where it takes ",
        ),
    ],
)
def test_a_value_that_left_its_domain_is_not_served_and_the_answer_says_so(root, others, served):
    cache.store(root, DEVICE, record(entry(64, BLOCK=512), *others))
    match = best_config("reduce", NAME, n=64).match
    assert match.tier is not Tier.EXACT and match.detail.startswith(served)
    assert "; the result for n=64 is not valid here: BLOCK = 512 is not among its values" in match.detail


def test_results_that_are_refused_for_one_reason_are_told_at_once(root):
    cache.store(root, DEVICE, record(*(entry(n, BLOCK=512) for n in (64, 128, 256)), default=Config({})))
    with pytest.raises(NoConfig) as caught:
        best_config("reduce", NAME, n=64)
    assert str(caught.value).count("BLOCK = 512 is not among its values") == 1
    assert re.search(
        r"; the result for n=64 \(like .* more\) is not valid here: BLOCK = 512", str(caught.value)
    )
    assert "; the kernel's default is not valid here: it has nothing where the kernel" in str(caught.value)


def test_strict_serves_the_exact_only_and_lists_what_exists(filled):
    assert best_config("reduce", NAME, n=64, strict=True).match.tier is Tier.EXACT
    with pytest.raises(NoConfig) as caught:
        best_config("reduce", NAME, n=65, strict=True)
    assert str(caught.value) == (
        f"reduce: nothing tuned for exactly example-gpu-100, int32, n=65; {filled} has "
        "example-gpu-100 (int32 n=64 or int32 n=1024 or int32 n=1048576), other-gpu (int32 n=1024)"
    )
    with pytest.raises(NoConfig, match="exactly unknown-gpu, int32, n=64"):
        best_config("reduce", "Unknown GPU", n=64, strict=True)


def test_an_unknown_kernel_lists_the_known_ones(filled):
    cache.store(filled, DEVICE, record(entry(64), kernel="scan"))
    with pytest.raises(
        NoConfig, match=r"'matmul' in .*; tune it with: .* matmul.*; kernels with results: reduce, scan$"
    ):
        best_config("matmul", NAME)
    with pytest.raises(NoConfig, match=r"no results for a kernel 'redduce' in \S*; did you mean reduce\?$"):
        best_config("redduce", NAME)


def test_an_empty_cache_says_how_to_fill_it(root):
    with pytest.raises(NoConfig, match=r"no folder .*, which \$AUTOTUNE_CACHE names; .*`autotune search`"):
        best_config("reduce")


@pytest.mark.parametrize("device", ["Example(R) GPU 100", "example-gpu-100", "EXAMPLE GPU 100", DEVICE])
def test_a_device_is_a_name_a_slug_or_its_description(filled, device):
    assert best_config("reduce", device, n=64).source_device == "example-gpu-100"


def test_a_folder_that_says_more_than_the_name_is_found_by_the_name(root):
    cache.store(root, replace(DEVICE, slug="cpu-example-gpu-100"), record(entry(64)))
    assert best_config("reduce", "Example GPU 100", n=64).source_device == "cpu-example-gpu-100"
    assert best_config("reduce", "GPU 100", n=64).match.tier is Tier.PORTABLE


def test_another_model_under_the_same_slug_is_another_device(filled):
    impostor = replace(DEVICE, architecture="ex_11")
    assert best_config("reduce", impostor, n=64).match.tier is Tier.SAME_VENDOR


def test_a_cpu_of_another_number_of_cores_is_another_device(root):
    """Clouds call many processors by one name."""
    cpu = replace(DEVICE, kind="cpu", architecture="x86_64")
    cache.store(root, cpu, record(entry(64)))
    assert best_config("reduce", cpu, n=64).match.tier is Tier.EXACT
    larger = replace(cpu, compute_units=2 * cpu.compute_units)
    assert best_config("reduce", larger, n=64).match.tier is Tier.SAME_ARCHITECTURE
    assert best_config("reduce", cpu.slug, n=64).match.tier is Tier.EXACT


def test_a_cpu_under_another_runtime_is_another_device(root):
    under_pocl = replace(DEVICE, name="Example CPU", slug="cpu-example-cpu", kind="cpu")
    cache.store(root, under_pocl, record(entry(64)))
    under_intel = replace(under_pocl, slug=under_pocl.slug + host_cpu.INTEL_SLUG, runtime="Intel OpenCL 3.1")
    assert best_config("reduce", under_intel, n=64).match.tier is Tier.SAME_ARCHITECTURE
    assert best_config("reduce", under_pocl, n=64).match.tier is Tier.EXACT


def test_no_device_takes_the_only_one(root):
    cache.store(root, DEVICE, record(entry(64)))
    cache.store(root, OTHER, record(entry(64), kernel="scan"))
    assert best_config("reduce", n=64).source_device == "example-gpu-100"
    cache.store(root, OTHER, record(entry(64, BLOCK=32)))
    match = best_config("reduce", n=64).match
    assert (match.tier, match.source_device) == (Tier.PORTABLE, "example-gpu-100")
    assert match.detail.startswith(
        "tuned on example-gpu-100 for n=64, the smallest worst-case slowdown over all"
    )


@pytest.mark.parametrize(
    ("name", "cores_more", "is_own"),
    [
        ("skylake-Some Xeon Processor", 0, True),
        ("skylake-Some Xeon Processor", 1, False),
        ("Some Xeon Processor 9000", 0, False),
    ],
)
def test_no_device_takes_the_cpu_of_this_machine_from_any_cache(
    root, tmp_path, monkeypatch, name, cores_more, is_own
):
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some(R) Xeon Processor\n")
    monkeypatch.setattr(host_cpu, "_CPUS", str(tmp_path / "cpuinfo"))
    units = os.cpu_count() + cores_more
    own = replace(DEVICE, name=name, slug="cpu-own", kind="cpu", vendor="Intel", compute_units=units)
    for folder, device in ((tmp_path / "cache", DEVICE), (root, OTHER), (root, own)):
        cache.store(folder, device, record(entry(64)))
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setattr(cache, "packaged_folder", lambda _: str(root))
    match = best_config("reduce", n=64).match
    assert (match.tier, match.source_device) == (Tier.EXACT, "cpu-own" if is_own else "example-gpu-100")


def test_no_sizes_take_the_only_result(filled):
    best = best_config("reduce", "Other GPU")
    assert (best.match.tier, best.match.source_sizes) == (Tier.EXACT, {"n": 1024})
    with pytest.raises(
        InputError, match="give the sizes; example-gpu-100 has results for n=64 or n=1024 or n=1048576"
    ):
        best_config("reduce", NAME)


def test_the_type_is_the_one_asked_for_else_the_first_declared(root):
    cache.store(root, DEVICE, record(entry(64, "int32", BLOCK=32), entry(1024, "float32", BLOCK=128)))
    assert best_config("reduce", NAME, n=1024).match.source_sizes == {"n": 64}
    best = best_config("reduce", NAME, n=64, dtype="float32")
    assert (best.dtype, best.match.source_sizes) == ("float32", {"n": 1024})
    with pytest.raises(InputError, match="dtype 'float64': expected one of int32, float32"):
        best_config("reduce", NAME, n=64, dtype="float64")


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32")])  # the latter is equal to "float32"
def test_a_type_that_is_no_name_is_refused(root, dtype):
    cache.store(root, DEVICE, record(entry(64, "float32")))
    for ask in (
        lambda: best_config("reduce", NAME, n=64, dtype=dtype),
        lambda: autotune.load_kernel("reduce", dtype=dtype),
    ):
        with pytest.raises(InputError, match='dtype is a name, such as "float32"; found '):
            ask()


def test_an_empty_device_is_no_device(filled):
    with pytest.raises(InputError, match="found an empty string"):
        best_config("reduce", "", n=64)


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ({"m": 64}, "reduce: takes the sizes n; given: m; missing: n"),
        ({"n": 64, "m": 64}, "reduce: takes the sizes n; given: m, n$"),
        ({"n": 0}, "reduce: n = 0: expected a whole number of at least 1"),
        ({"n": 6.5}, r"reduce: sizes are whole numbers; found n=6\.5"),
        ({"n": "64"}, "reduce: sizes are whole numbers; found n='64'; write n=64"),
        ({"n": [64]}, "whole numbers"),
    ],
)
@pytest.mark.parametrize("device", [NAME, "Unknown GPU"])
def test_wrong_sizes_are_bad_input(filled, sizes, complaint, device):
    with pytest.raises(InputError, match=complaint):
        best_config("reduce", device, **sizes)


def test_defines_and_flags_are_all_the_source_needs(root):
    cache.store(root, DEVICE, record(entry(64, ALGORITHM="shuffle", UNROLL=True)))
    best = best_config("reduce", NAME, n=64)
    assert best.defines == {
        "DTYPE": "int",
        "DTYPE_INT32": 1,
        "ALGORITHM": "ALGORITHM_SHUFFLE",
        "ALGORITHM_TREE": 1,
        "ALGORITHM_SHUFFLE": 2,
        "BLOCK": 64,
        "VECTOR": 1,
        "UNROLL": 1,
    }
    assert "-DALGORITHM=ALGORITHM_SHUFFLE" in best.flags
    assert len(best.flags) == len(best.defines)
    assert best.options("cuda")[0] == f"--maxrregcount={best['BLOCK'] // 2}"
    assert best.options("opencl") == ()


def test_an_option_may_depend_on_the_sizes_of_a_request_that_was_not_tuned(root):
    by_size = {"cuda": {"--maxrregcount": "64 if n > 100 else 32"}}
    cache.store(root, DEVICE, replace(record(entry(64)), compiler_options=by_size))
    best = best_config("reduce", "cpu-unknown", n=1024)
    assert best.match.tier is Tier.DEFAULT and best.options("cuda", {"n": 1024}) == ("--maxrregcount=64",)
    assert best_config("reduce", NAME, n=64).options("cuda", {"n": 1024}) == ("--maxrregcount=32",)


def test_arguments_are_all_a_program_must_allocate_and_pass(root):
    cache.store(root, DEVICE, record(entry(1024, BLOCK=128)))
    arguments = {item.name: item for item in best_config("reduce", NAME, n=1024).arguments(n=1024)}
    best = best_config("reduce", NAME, n=1024)
    tile = best["BLOCK"] * best["VECTOR"]
    assert arguments["part"].shape == (-(-1024 // tile),) and arguments["part"].role == "scratch"
    assert arguments["n"].value == 1024 and arguments["n"].dtype == "int32"
    assert arguments["x"].dtype == best.dtype


def test_launch_evaluates_the_plan_for_the_sizes(filled):
    best = best_config("reduce", NAME, n=1024)
    first = Launch("main", (2, 1, 1), (128, 1, 1), 512, ("x", "part", "n"))
    assert best.launch(n=1024) == (first, Launch("last", (1, 1, 1), (32, 1, 1), 0, ("part", "out")))
    assert best.launch(n=4) == (replace(first, grid=(1, 1, 1)),)
    assert best.launch(n=2**30)[0].grid == (32, 1, 1)


def test_numbers_of_other_packages_are_sizes_too(filled):
    n = np.int64(1024)
    best = best_config("reduce", NAME, n=n)
    assert best.launch(n=n) == best.launch(n=1024)
    assert [item.value for item in best.arguments(n=n)] == [None, None, None, 1024]
    with pytest.raises(InputError, match=r"sizes are whole numbers; found n=1024\.0"):
        best.launch(n=1024.0)


def test_launch_reads_the_device_that_was_given(filled):
    best = best_config("reduce", replace(DEVICE, compute_units=1), n=1024)
    assert best.launch(n=2**30)[0].grid == (8, 1, 1)


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ({}, "takes the sizes n; given: none"),
        ({"m": 4}, "takes the sizes n; given: m"),
        ({"n": -4}, "n = -4: expected a whole number of at least 1"),
        ({"n": 1023}, "not valid for n=1023: n % VECTOR == 0; ask best_config for these sizes"),
    ],
)
def test_launch_refuses_sizes_it_cannot_serve(filled, sizes, complaint):
    with pytest.raises(InputError, match=complaint):
        best_config("reduce", NAME, n=1024).launch(**sizes)


def test_many_constraints_that_were_not_checked_are_counted(filled):
    path = cache.record_path(str(filled), DEVICE.slug, "reduce")
    known = cache.read_record(path)
    more = tuple(f"BLOCK <= device.compute_units * {factor}" for factor in (64, 128))
    Path(path).write_text(cache.record_text(replace(known, constraints=(*known.constraints, *more))))
    detail = best_config("reduce", "cpu-unknown", n=64).match.detail
    assert detail.endswith("; not checked, as device or sizes are unknown: 3 constraints")


def test_launch_of_an_unknown_device_says_what_is_missing(filled):
    complaint = r"no value for 'device\.compute_units'; the device is not known: name one that"
    with pytest.raises(InputError, match=complaint):
        best_config("reduce", "Unknown GPU", n=64).launch(n=64)


def test_a_changed_driver_source_or_space_is_said(root):
    old = replace(PROVENANCE, space_sha256="b" * 64, tuned_at="2024-01-01T00:00:00+00:00")
    cache.store(root, DEVICE, record(entry(64, provenance=old), entry(1024)))
    assert best_config("reduce", DEVICE, n=1024).stale_reasons == ()
    assert best_config("reduce", replace(DEVICE, driver="driver 8"), n=1024).stale_reasons == (
        "the driver was driver 7 when this was tuned and is driver 8 now.",
    )
    (reason,) = best_config("reduce", NAME, n=64).stale_reasons
    assert reason.startswith("the space was bbbb")


def test_a_best_is_a_mapping_that_cannot_be_changed(filled):
    best = best_config("reduce", NAME, n=64)
    assert (len(best), best["BLOCK"], sorted(best)) == (4, 32, ["ALGORITHM", "BLOCK", "UNROLL", "VECTOR"])
    with pytest.raises(TypeError):
        best["BLOCK"] = 64
    with pytest.raises(FrozenInstanceError):
        best.config = Config({})


def test_a_changed_file_is_seen_and_an_unchanged_one_is_not_read_again(filled):
    first = best_config("reduce", NAME, n=64)
    assert best_config("reduce", NAME, n=64) is first
    cache.store(filled, DEVICE, record(entry(64, BLOCK=256)))
    assert best_config("reduce", NAME, n=64)["BLOCK"] == 256


def test_results_that_appear_later_are_seen(filled):
    assert best_config("reduce", "Late GPU", n=64).match.tier is Tier.PORTABLE
    cache.store(filled, replace(DEVICE, name="Late GPU", slug="late-gpu"), record(entry(64), kernel="scan"))
    assert best_config("reduce", "Late GPU", n=64).match.tier is Tier.PORTABLE
    cache.store(filled, replace(DEVICE, name="Late GPU", slug="late-gpu"), record(entry(64)))
    assert best_config("reduce", "Late GPU", n=64).match.tier is Tier.EXACT


def test_the_current_folder_goes_before_the_shipped_cache_for_the_kernels_it_knows(tmp_path, monkeypatch):
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setattr(cache, "packaged_folder", lambda _: str(tmp_path / "shipped"))
    cache.store("shipped", DEVICE, record(entry(64, BLOCK=128)))
    assert best_config("reduce", NAME, n=64)["BLOCK"] == 128
    cache.store("cache", DEVICE, record(entry(64), kernel="scan"))
    assert best_config("reduce", NAME, n=64)["BLOCK"] == 128
    cache.store("cache", DEVICE, record(entry(64, BLOCK=32)))
    assert best_config("reduce", NAME, n=64)["BLOCK"] == 32
    os.chdir("/")
    assert best_config("reduce", NAME, n=64)["BLOCK"] == 128


def test_the_argument_goes_before_the_variable(filled, tmp_path):
    cache.store("given", DEVICE, record(entry(64, BLOCK=256)))
    assert best_config("reduce", NAME, n=64)["BLOCK"] == 32
    assert best_config("reduce", NAME, n=64, cache="given")["BLOCK"] == 256
    assert best_config("reduce", NAME, n=64, cache=tmp_path / "given")["BLOCK"] == 256


def test_what_cannot_be_looked_at_is_no_missing_result(filled):
    """A loop of links stands for whatever keeps a file from being looked at, a permission say."""
    path = filled / DEVICE.slug / "reduce.json"
    assert best_config("reduce", NAME, n=64)["BLOCK"] == 32
    path.unlink()
    path.symlink_to(path)
    for device in (NAME, "Unknown GPU"):
        with pytest.raises(CacheError, match=r"gpu-100/reduce\.json: cannot be read: Too many levels"):
            best_config("reduce", device, n=64)


def test_a_device_may_have_any_name(filled):
    assert best_config("reduce", "GPU " * 100, n=64).match.tier is Tier.PORTABLE


def test_a_block_without_threads_is_not_served(root):
    plan = (LaunchSpec("main", ("1",), ("n // 128",), ("x",)),)
    cache.store(root, DEVICE, replace(record(entry(1024, BLOCK=128)), launch=plan))
    with pytest.raises(NoConfig, match="'n // 128' gives 0, expected at least 1"):
        best_config("reduce", NAME, n=64)


def test_a_file_with_something_that_is_no_expression_is_damaged(root):
    cache.store(root, DEVICE, replace(record(entry(64)), constraints=("__import__('os')",)))
    with pytest.raises(CacheError, match=r"results of reduce: damaged: .*only these may be called"):
        best_config("reduce", NAME, n=64)


@pytest.mark.parametrize(
    ("question", "keywords", "complaint"),
    [
        ((["reduce"],), {}, "best_config takes names"),
        ((7,), {}, "7 is not the name of a kernel"),
        (("reduce", NAME), {"cache": 7}, "cache 7: expected the path of a folder"),
        (("reduce", NAME), {"cache": b"here"}, "cache b'here': expected the path of a folder"),
        (("reduce", ["gpu"]), {}, r"device \['gpu'\]: expected a name, a slug, the number of a GPU"),
        (("reduce", True), {}, "device True: expected a name"),
        (("reduce", NAME), {"min_match": "exact"}, "expected a Tier as min_match"),
        (("reduce", NAME), {"on_miss": "tune"}, ".record. or None as on_miss; found .* and 'tune'"),
    ],
)
def test_a_question_of_the_wrong_kind_is_bad_input(filled, question, keywords, complaint):
    with pytest.raises(InputError, match=complaint):
        best_config(*question, n=64, **keywords)


values = {
    "ALGORITHM": ("tree", "shuffle"),
    "BLOCK": (32, 64, 128, 256, 512),
    "VECTOR": (1, 2, 3, 4),
    "UNROLL": (True,),
}
configs = st.fixed_dictionaries({name: st.sampled_from(domain) for name, domain in values.items()})


@settings(deadline=None)
@given(
    tuned_configs=st.dictionaries(st.integers(1, 4096), configs, min_size=1, max_size=6),
    default_config=configs,
    n=st.integers(1, 4096),
    threads=st.sampled_from([32, 64, 256, 1024]),
)
def test_what_is_served_is_always_valid(tmp_path_factory, tuned_configs, default_config, n, threads):
    root = tmp_path_factory.mktemp("cache")
    device = replace(DEVICE, max_threads_per_block=threads)
    entries = (replace(entry(size), config=Config(config)) for size, config in tuned_configs.items())
    held = record(*entries, default=Config(default_config))
    cache.store(root, DEVICE, held)
    try:
        best = best_config("reduce", device, n=n, cache=root)
    except NoConfig:
        assert KernelOnDevice(held, device, "int32").check(held.default, {"n": n}).violations
        return
    assert best["BLOCK"] <= min(threads, 256)
    assert n % best["VECTOR"] == 0
    assert best["VECTOR"] != 3
    assert best.launch(n=n)


def test_the_package_offers_what_production_code_needs():
    assert autotune.best_config is best_config
    assert set(autotune.__all__) <= set(dir(autotune))
    assert all(getattr(autotune, name) is not None for name in autotune.__all__)
    with pytest.raises(AttributeError, match="no attribute 'best_confg'"):
        autotune.best_confg  # noqa: B018


def test_a_tuned_result_of_one_cache_comes_before_the_default_of_another(root, tmp_path, monkeypatch):
    other = replace(DEVICE, name="Other GPU", slug="other-gpu")
    cache.store(tmp_path / "near", other, record(entry(64, BLOCK=32)))
    cache.store(tmp_path / "far", DEVICE, record(entry(1024, BLOCK=128)))
    monkeypatch.setattr(
        "autotune.serving.lookup.read_roots", lambda _: (str(tmp_path / "near"), str(tmp_path / "far"))
    )
    best = best_config("reduce", NAME, n=1024)
    assert best.match.tier is Tier.EXACT and best["BLOCK"] == 128


@pytest.mark.parametrize(("noise", "told"), [(None, ""), (0.04, ""), (1.01, "; measured with 101% noise")])
def test_a_noisy_result_is_exact_and_says_so(root, noise, told):
    cache.store(root, DEVICE, record(replace(entry(64), noise=noise)))
    for strict in (False, True):
        match = best_config("reduce", NAME, n=64, strict=strict).match
        assert match.tier is Tier.EXACT and match.detail == f"tuned on example-gpu-100 for n=64{told}"
    assert best_config("reduce", NAME, n=65).match.detail.endswith(f"the nearest to n=65{told}")
    assert best_config("reduce", "Example GPU 200", n=64).match.detail.split("result")[0].count(told)


def test_an_answer_reads_as_one_line_and_as_a_table_in_notebooks(filled):
    best = best_config("reduce", NAME, n=64)
    assert repr(best) == str(best)
    assert repr(best).startswith(f"Best(reduce on {DEVICE.name}, n=64: ") and repr(best).endswith(", exact)")
    assert "BLOCK=32" in repr(best) and "<td>BLOCK</td><td>32</td>" in best._repr_html_()
