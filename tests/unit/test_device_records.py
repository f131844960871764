"""Of which kernel the records of several caches are: every reader of them answers alike."""

from dataclasses import replace

import pytest

from autotune.analysis.compare import results_of, select
from autotune.core.records import ArgumentSpec, Config, Parameter, Tier
from autotune.errors import InputError, NoConfig
from autotune.interop.c_header import header
from autotune.serving import cache
from autotune.serving.device_records import device_records, latest, newest
from autotune.serving.lookup import best_config
from tests.cache_example import DEVICE, OTHER, PROVENANCE, entry, record
from tests.cache_files import write

LATER = replace(PROVENANCE, tuned_at="2030-01-01T00:00:00+00:00")
THIRD = replace(DEVICE, name="Third GPU", slug="third-gpu")


def own(*entries):
    """The kernel that the program has."""
    return record(*(entries or (entry(64, BLOCK=32),)))


def namesake():
    """Another kernel, which has the same name and was tuned later."""
    config = Config({"WIDTH": 7})
    return replace(
        record(replace(entry(64, provenance=LATER), config=config, ties=()), default=config),
        parameters=(Parameter("WIDTH", (7,)),),
        constraints=(),
        derived={},
        arguments=(ArgumentSpec("other", "DTYPE", "in", ("n",)),),
        launch=(),
        compiler_options={},
    )


@pytest.fixture
def roots(tmp_path, monkeypatch):
    """Two caches, of which the first is asked first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setattr(cache, "packaged_folder", lambda _: str(tmp_path / "shipped"))
    return tmp_path / "cache", tmp_path / "shipped"


@pytest.fixture
def mixed(roots):
    """The program's kernel in the first cache; in the second one it and, on two devices, the namesake."""
    near, far = roots
    write(near, DEVICE, own())
    write(far, DEVICE, namesake())
    write(far, OTHER, namesake())
    write(far, THIRD, own(entry(64, BLOCK=128)))
    return roots


def test_a_namesake_is_not_compared(mixed):
    found = device_records("reduce")
    assert [one.folder for one in found] == [DEVICE.slug, THIRD.slug]
    assert [one.entry.config["BLOCK"] for one in select(results_of(found), {}, None)] == [32, 128]


def test_a_namesake_does_not_say_what_a_loaded_kernel_s_arguments_are(mixed):
    assert newest("reduce").record == own()


def test_a_namesake_is_not_in_a_header(mixed):
    text = header("reduce")
    assert f'"{DEVICE.slug}"' in text and f'"{THIRD.slug}"' in text
    assert OTHER.slug not in text and "WIDTH" not in text


def test_a_namesake_s_result_is_not_served_though_it_is_of_this_very_device(mixed):
    best = best_config("reduce", OTHER, n=64)
    assert best.match.tier is Tier.SAME_VENDOR and best.record.parameter_names == own().parameter_names
    with pytest.raises(NoConfig, match=r"shipped/other-gpu has another kernel of this name"):
        best_config("reduce", OTHER, n=64, strict=True)
    assert best_config("reduce", "Example GPU 100", n=65).config == best_config("reduce", DEVICE, n=64).config
    assert best_config("reduce", "Third GPU", n=64)["BLOCK"] == 128


def test_where_nothing_but_the_default_is_left_it_is_the_program_s_own(mixed):
    small = replace(OTHER, vendor="Small", kind="cpu", max_threads_per_block=64)
    assert best_config("reduce", small, n=64).config == own().default


def test_the_first_cache_with_results_decides(roots):
    write(roots[1], OTHER, namesake())
    assert best_config("reduce", "Other GPU", n=64) == {"WIDTH": 7}
    assert [one.folder for one in device_records("reduce")] == [OTHER.slug]
    assert newest("reduce").record == namesake()


def test_one_cache_may_hold_two_states_of_a_kernel(roots):
    near, far = roots
    write(near, DEVICE, own())
    write(near, OTHER, namesake())
    write(far, THIRD, own(entry(64, BLOCK=128)))
    assert [one.folder for one in device_records("reduce")] == [DEVICE.slug, OTHER.slug, THIRD.slug]
    assert newest("reduce").record == namesake()
    with pytest.raises(InputError, match="different parameters; repeat the older searches"):
        header("reduce")


def test_the_latest_record_is_the_one_with_the_newest_result():
    old, new, empty = own(), namesake(), record()
    assert latest([old, empty, new]) == latest([new, old]) == new
    assert latest([empty]) == empty


def test_without_results_every_reader_says_what_there_is(roots):
    write(roots[0], DEVICE, own())
    asked = (
        lambda: best_config("scan", n=1),
        lambda: device_records("scan"),
        lambda: newest("scan"),
        lambda: header("scan"),
    )
    for ask in asked:
        with pytest.raises(
            (NoConfig, InputError),
            match=r"no results for a kernel 'scan' in .*; kernels with results: reduce",
        ):
            ask()
