"""Comparison of results across devices: the figures, what is missing, and what the command prints."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.analysis.compare import MARGIN, DeviceResult, against_cpus, compare, portfolio, select
from autotune.cli import main
from autotune.core.records import Config
from autotune.errors import InputError
from tests.cache_example import DEFAULT, DEVICE, OTHER, entry, record
from tests.cache_files import write

THIRD = replace(DEVICE, name="Third GPU", slug="third-gpu", memory_bandwidth_bytes_per_s=None)
CPU = replace(DEVICE, name="Example CPU", slug="cpu-example", kind="cpu")


def config(**values):
    return Config({**DEFAULT, **values})


A, B, C = config(BLOCK=32), config(BLOCK=64), config(BLOCK=128)


def result(device, best, best_ms, measured=(), **changes):
    known = replace(
        entry(1024), config=best, time_ms=best_ms, default_time_ms=4.0, measured=tuple(measured), **changes
    )
    return DeviceResult(device.slug, device, known)


@pytest.fixture
def three():
    return [
        result(DEVICE, A, 1.0, [(B, 1.04), (C, 2.0)], work_bytes=6e8, work_flops=3e9),
        result(OTHER, B, 2.0, [(A, 4.0)], work_bytes=6e8),
        result(THIRD, C, 5.0, [(B, 5.2)]),
    ]


def test_rates_and_gains_of_each_device(three):
    first, second, third = compare("reduce", [*three, result(CPU, A, 10.0)]).tuned
    assert (first.bytes_per_s, first.flops_per_s) == pytest.approx((6e11, 3e12))
    assert first.bandwidth_share == pytest.approx(0.4) and first.speedup == 4.0
    assert second.flops_per_s is None and third.bytes_per_s is None and third.bandwidth_share is None


def test_each_gpu_is_compared_with_the_fastest_cpu_for_its_largest_common_problem(three):
    cpus = [result(CPU, A, 10.0), result(replace(CPU, slug="cpu-other"), B, 8.0)]
    larger = replace(three[0].entry, sizes={"n": 4096}, time_ms=3.0)
    pairs = list(against_cpus([*three, replace(three[0], entry=larger), *cpus]))
    assert [(pair.gpu.folder, pair.cpu.folder, pair.ratio) for pair in pairs] == [
        (DEVICE.slug, "cpu-other", 8.0),
        (OTHER.slug, "cpu-other", 4.0),
        (THIRD.slug, "cpu-other", 1.6),
    ]
    assert not list(against_cpus(three)) and not list(against_cpus(cpus))


def test_a_cpu_and_a_gpu_with_other_sizes_are_compared_by_their_rates(tmp_path, three, capsys):
    small = replace(three[0].entry, sizes={"n": 64}, time_ms=2.0, work_bytes=6e7, work_flops=3e8)
    write(tmp_path, DEVICE, record(three[0].entry))
    write(tmp_path, CPU, record(small))
    assert main(["compare", "reduce", "--cache", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "GPU over CPU" in said.out and "20 x" in said.out and "rates are compared" in said.out
    assert f"2 ms at n=64, {small.dtype}" in said.out  # it may be of another type than the table above
    assert "Nothing to compare" not in said.out and "not compared" not in said.err
    assert main(["compare", "reduce", "--cache", str(tmp_path), "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["against_cpu"]
    assert (pair["gpu"], pair["cpu"], pair["ratio"]) == (DEVICE.slug, CPU.slug, pytest.approx(20))


def test_cpus_are_compared_where_there_is_no_gpu(three):
    cpus = [result(CPU, A, 10.0), result(replace(CPU, slug="cpu-other"), B, 9.0)]
    assert [one.folder for one in compare("reduce", cpus).tuned] == ["cpu-example", "cpu-other"]
    assert len(compare("reduce", [*cpus, three[0]]).tuned) == 1


def test_the_matrix_tells_measured_cells_from_missing_ones(three):
    found = compare("reduce", three)
    assert found.matrix == {
        DEVICE.slug: {DEVICE.slug: 1.0, OTHER.slug: 0.5, THIRD.slug: None},
        OTHER.slug: {
            DEVICE.slug: pytest.approx(1 / 1.04),
            OTHER.slug: 1.0,
            THIRD.slug: pytest.approx(1 / 1.04),
        },
        THIRD.slug: {DEVICE.slug: 0.5, OTHER.slug: None, THIRD.slug: 1.0},
    }
    assert found.missing == 2
    assert found.flips == {"BLOCK": {DEVICE.slug: 32, OTHER.slug: 64, THIRD.slug: 128}}
    assert found.agreed == {"ALGORITHM": "tree", "VECTOR": 1, "UNROLL": False}


def test_one_configuration_for_all_and_its_portability(three):
    found = compare("reduce", three)
    assert found.portable.config == B and found.portable.worst == pytest.approx(1.04)
    assert found.most_portable.config == B
    assert found.most_portable.portability == pytest.approx(3 / (1.04 + 1 + 1.04))
    nothing_in_common = compare("reduce", [three[0], result(THIRD, config(VECTOR=4), 1.0)])
    assert nothing_in_common.most_portable is None and nothing_in_common.portable.portability is None


def test_the_smallest_portfolio(three):
    assert compare("reduce", three).portfolio == ((B, (DEVICE.slug, OTHER.slug, THIRD.slug)),)
    apart = [three[0], result(OTHER, C, 1.0), result(THIRD, A, 1.0)]
    assert compare("reduce", apart).portfolio == ((A, (DEVICE.slug, THIRD.slug)), (C, (OTHER.slug,)))


CONFIGS = [config(BLOCK=block, VECTOR=vector) for block in (32, 64, 128) for vector in (1, 2)]


@given(
    st.lists(
        st.dictionaries(st.sampled_from(CONFIGS), st.sampled_from([1.0, 1.03, 1.2]), min_size=1),
        min_size=1,
        max_size=5,
    )
)
def test_a_portfolio_covers_every_device_with_few_configurations(tables):
    known = {
        f"gpu-{number}": {**times, min(times, key=times.get): 1.0} for number, times in enumerate(tables)
    }
    found = portfolio(known)
    covers = [{d for d, times in known.items() if times.get(c, 9) <= 1 + MARGIN} for c in CONFIGS]
    left = set(known)
    for chosen, devices in found:
        assert set(devices) == covers[CONFIGS.index(chosen)]
        assert len(left & set(devices)) == max(len(left & cover) for cover in covers) > 0
        left -= set(devices)
    assert not left


def test_the_problem_of_most_devices_is_chosen_then_the_largest():
    known = [(DEVICE, 64), (DEVICE, 1024), (DEVICE, 4096), (OTHER, 64), (OTHER, 1024)]
    results = [DeviceResult(device.slug, device, entry(n)) for device, n in known]
    assert {one.entry.sizes["n"] for one in select(results, {}, None)} == {1024}
    assert len(select(results, {"n": 4096}, None)) == 1
    for sizes, dtype in (({"n": 5}, None), ({}, "float32")):
        with pytest.raises(InputError, match="--size and --dtype of int32 n=64; int32 n=1024"):
            select(results, sizes, dtype)


@pytest.fixture
def cache(tmp_path, three):
    for one in three:
        write(tmp_path, one.device, record(one.entry))
    return str(tmp_path)


def test_what_the_command_prints(cache, capsys):
    assert main(["compare", "reduce", "--cache", cache]) == 0
    text = capsys.readouterr().out
    assert "600" in text and "40%" in text and "96.2%" in text and "2 cells were not measured" in text
    assert "GPU over CPU" not in text


def test_json_and_heat_map(cache, capsys, tmp_path):
    plot = tmp_path / "plot" / "map.svg"
    assert main(["compare", "reduce", "--cache", cache, "--json", "--plot", str(plot)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["matrix"]["third-gpu"]["other-gpu"] is None
    assert found["portfolio"] == [
        {"config": dict(B), "devices": ["example-gpu-100", "other-gpu", "third-gpu"]}
    ]
    assert found["devices"][0]["bandwidth_share"] == pytest.approx(0.4)
    drawn = ET.fromstring(plot.read_text())
    texts = ["".join(item.itertext()) for item in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("100") == 3 and texts.count("50") == 2 and texts.count("third-gpu") == 2
    capsys.readouterr()
    assert main(["compare", "reduce", "--cache", cache, "--plot", "map.bmp"]) == 2
    assert "expected a name that ends with .svg or .png or .pdf" in capsys.readouterr().err


def test_a_single_device_says_what_is_missing(tmp_path, three, capsys):
    write(tmp_path, DEVICE, record(three[2].entry))
    assert main(["compare", "reduce", "--cache", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "Nothing to compare with: tune on another device" in text and "Rates are unknown" in text
    assert main(["compare", "other", "--cache", str(tmp_path)]) == 1
    assert "no results for a kernel 'other'" in capsys.readouterr().err


def test_all_sizes_and_cpus_are_listed_where_the_comparison_leaves_some_out(folder):
    for size in (500, 1000):
        folder.search("--budget", "2", "--size", f"n={size}")
    shown = folder.run("compare", "double", "--cache", "cache").stdout
    table = shown.split("All results, on CPUs and GPUs and at every size\n")[1].splitlines()
    assert [row.split()[:2] for row in table[1:]] == [["fake-gpu", "n=500"], ["fake-gpu", "n=1,000"]]


def test_nothing_is_listed_twice_if_everything_is_compared(searched_folder):
    assert "All results" not in searched_folder.run("compare", "double", "--cache", "cache").stdout
