"""The report: what it says of a search, that hostile texts stay texts, and how large it gets."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.core.outcomes import OTHER_SIZES, PASSED
from autotune.core.records import Config
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.evaluation.identity import sizes_text
from autotune.evaluation.journal_rows import encode_checks, encode_measurement, encode_trial
from autotune.hardware.architectures import ARCHITECTURES
from autotune.hardware.peak_rates import boost_mhz, peak_rates, tensor_operations_per_s
from autotune.report.gather import gather
from autotune.report.page import embedded, page_html
from autotune.report.search_page import report_html, report_json
from autotune.report.source_figures import source_figures
from autotune.serving import cache
from autotune.serving.ceilings import BYTES, FILE, OPERATIONS, Ceiling, ceilings_text
from tests.cache_example import DEFAULT, DEVICE, PROVENANCE, entry, record
from tests.cache_files import write
from tests.conftest import KERNEL, ROOT, run_in_process
from tests.recorded_files import EXCERPT, T4

HOSTILE = '</script><script>document.title="owned"</script>"\'`\u202e\u0000&<!--'


def trial(number, status=Status.OK, time_ms=1.0, config=None, detail="", **others):
    if status is Status.OK:
        others |= {"measurement": Measurement((time_ms,) * 7, Rule.SAMPLES), "note": detail}
    else:
        others |= {"failure": Failure(status, detail)}
    return Trial(Config(config or {"A": number}), f"{number:032x}", **others)


def journal(path, trials, finals=None, kernel="double", n=1000, sizes=None, **header):
    rows = [{"journal": 1, "kernel": kernel, "device": "Fake GPU", "verification": "3", **header}]
    rows[0] |= {"sizes": sizes_text(sizes or {"n": n}), "dtype": "int32"}
    rows += [{"trial": encode_trial(one)} for one in trials]
    if finals:
        rows.append({"finals": {key: encode_measurement(one) for key, one in finals.items()}})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def data_of(html):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


def headline(search):
    return {item["title"]: item for item in search["headline"]}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder without journals: a search of `reduce` in the current one would be shown, too."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_CACHE", str(tmp_path / "cache"))


def test_columns_hold_what_the_journal_holds(tmp_path, no_cache):
    trials = [
        trial(1, time_ms=3.0, registers=32, cost_s=0.5),
        trial(2, Status.TIMEOUT, detail="took 10 s"),
        trial(3, time_ms=2.0, registers=64, cost_s=0.25),
    ]
    (search,) = report_json(gather([journal(tmp_path / "a.jsonl", trials)]))["searches"]
    columns = search["columns"]
    assert columns["time_ms"] == [3, None, 2] and columns["registers"] == [32, None, 64]
    assert [search["statuses"][place] for place in columns["status"]] == ["ok", "timeout", "ok"]
    assert [search["details"][place] for place in columns["detail"]] == ["", "took 10 s", ""]
    assert [search["parameters"][0]["values"][place] for place in columns["configs"][0]] == [1, 2, 3]
    assert search["best"] == 2 and "energy_j" not in columns
    assert headline(search)["Trials"]["note"] == "1 failed"


def test_the_fastest_of_the_last_round_is_the_best(tmp_path, no_cache):
    """A search's own fastest was also the luckiest."""
    trials = [trial(1, time_ms=1.0), trial(2, time_ms=1.1), trial(3, time_ms=0.9)]
    finals = {
        trials[0].key: Measurement((1.0, 1.01, 1.02) * 4, Rule.LAST_ROUND),
        trials[2].key: Measurement((1.5, 1.51, 1.52) * 4, Rule.LAST_ROUND),
    }
    (search,) = report_json(gather([journal(tmp_path / "a.jsonl", trials, finals)]))["searches"]
    said = headline(search)
    assert search["best"] == 0 and said["Best time"]["value"] == "1.01 ms"
    assert said["Ties"]["value"] == "0" and said["Best time"]["note"].endswith("last round")


def test_a_trial_that_was_faster_in_the_search_than_the_best_says_so(tmp_path, no_cache):
    trials = [trial(1, time_ms=1.2), trial(2, time_ms=0.8), trial(3, time_ms=0.9), trial(4, time_ms=1.5)]
    finals = {
        trials[0].key: Measurement((1.0, 1.01, 1.02) * 4, Rule.LAST_ROUND),
        trials[2].key: Measurement((1.5, 1.51, 1.52) * 4, Rule.LAST_ROUND),
    }
    (search,) = report_json(gather([journal(tmp_path / "a.jsonl", trials, finals)]))["searches"]
    assert search["best"] == 0 and search["columns"]["time_ms"] == [1.01, 0.8, 1.51, 1.5]
    assert [search["details"][place] for place in search["columns"]["detail"]] == [
        "",
        "a time of the search; the best takes 1.01 ms in the last round",
        "0.9 ms in the search, 1.51 ms in the last round",
        "",
    ]


def test_a_trial_of_an_earlier_search_is_replaced_by_that_of_a_later_one(tmp_path, no_cache):
    """A journal may have a configuration twice: with another driver, say, a trial has another key."""
    one, two, three = ({"A": number} for number in (1, 2, 3))
    trials = [
        trial(1, time_ms=0.5, config=one),
        trial(2, time_ms=0.6, config=two),
        trial(3, time_ms=3.0, config=three),
        trial(4, time_ms=2.0, config=one),
        trial(5, time_ms=1.0, config=two),
        trial(6, time_ms=9.0, config=three),
    ]
    finals = {
        trials[place].key: Measurement((time_ms,) * 12, Rule.LAST_ROUND)
        for place, time_ms in ((2, 3), (3, 2))
    }
    (search,) = report_json(gather([journal(tmp_path / "a.jsonl", trials, finals)]))["searches"]
    assert search["columns"]["time_ms"] == [3, 2, 1] and search["best"] == 1
    assert headline(search)["Trials"]["value"] == "3"


def test_a_search_without_a_last_round_says_so(tmp_path, no_cache):
    samples = Measurement((1.0, 1.1, 1.2) * 4, Rule.SAMPLES)
    path = journal(tmp_path / "a.jsonl", [replace(trial(1), measurement=samples)])
    (search,) = report_json(gather([path]))["searches"]
    assert headline(search)["Best time"]["note"].endswith("there was no last round")
    assert "Ties" not in headline(search)


def test_a_kernel_of_the_cache_shows_what_the_cache_serves(tmp_path):
    """Times of the search may lie below that of the last round."""
    one, two = (Config({**DEFAULT, "BLOCK": block}) for block in (32, 256))
    best = Config({**DEFAULT, "BLOCK": 128})
    served = replace(
        entry(64),
        config=best,
        time_ms=2.0,
        interval_ms=(1.9, 2.1),
        default_time_ms=5.0,
        ties=(two,),
        measured=((one, 1.0), (two, 2.01), (DEFAULT, 4.0)),
    )
    cache.store(tmp_path, DEVICE, record(served))
    (search,) = report_json(gather(["reduce"], tmp_path))["searches"]
    said = headline(search)
    assert said["Best time"] == {"title": "Best time", "value": "2 ms", "note": "1.9 to 2.1 ms, last round"}
    assert said["Over the default"]["value"] == "2.5 x" and said["Ties"]["value"] == "1"
    (block,) = [place for place, one in enumerate(search["parameters"]) if one["name"] == "BLOCK"]
    values = search["parameters"][block]["values"]
    assert values[search["columns"]["configs"][block][search["best"]]] == 128
    place = search["columns"]["time_ms"].index(1)
    detail = search["details"][search["columns"]["detail"][place]]
    assert detail == "a time of the search; the best takes 2 ms in the last round"
    assert not search["hasOrder"]


def test_an_entry_of_another_source_says_nothing_of_a_journal(tmp_path):
    config = Config({**DEFAULT, "BLOCK": 128})
    known = replace(entry(64), config=config, time_ms=1.0, default_time_ms=9.0)
    cache.store(tmp_path, DEVICE, record(known))
    origin = known.provenance.source_sha256
    for source, speedups in ((origin[:16], 1), ("f" * 16, 0)):
        path = tmp_path / f"{source}.jsonl"
        header = {"kernel": "reduce", "n": 64, "device": DEVICE.name, "source": source}
        tried = trial(1, config=config)
        finals = {tried.key: Measurement((1.0,) * 12, Rule.LAST_ROUND)}
        (search,) = report_json(gather([journal(path, [tried], finals, **header)], tmp_path))["searches"]
        assert ("Over the default" in headline(search)) == speedups


def test_values_of_different_types_are_different_values(tmp_path, no_cache):
    trials = [trial(n, config={"A": value}) for n, value in enumerate([True, 1, 0, False, "1"])]
    (search,) = report_json(gather([journal(tmp_path / "a.jsonl", trials)]))["searches"]
    assert len(set(search["columns"]["configs"][0])) == 5
    assert len(search["parameters"][0]["values"]) == 5


def test_a_trial_without_a_parameter_has_no_value_of_it(tmp_path, no_cache):
    trials = [trial(1, config={"A": 1}), trial(2, config={"A": 1, "B": 2})]
    (search,) = report_json(gather([journal(tmp_path / "a.jsonl", trials)]))["searches"]
    assert search["columns"]["configs"] == [[0, 0], [-1, 0]]


def test_a_journal_without_a_success_makes_a_report(tmp_path, no_cache):
    path = journal(tmp_path / "a.jsonl", [trial(1, Status.COMPILE_ERROR, detail="no")])
    (search,) = data_of(report_html(gather([path])))["searches"]
    assert search["best"] is None and headline(search)["Best time"]["value"] == "none"
    assert "why" in search["importance"]


def test_hostile_texts_are_data_only(tmp_path, no_cache):
    config = {"B": HOSTILE, "A": 1}
    trials = [trial(1, config=config), trial(2, Status.CRASHED, detail=HOSTILE, config=config | {"A": 2})]
    html = report_html(gather([journal(tmp_path / "a.jsonl", trials, kernel=HOSTILE)]))
    html.encode()  # no lone surrogate is left, on which writing would fail
    assert html.lower().count("<script") == 2 and html.lower().count("</script") == 2
    assert "owned</title>" not in html and '<!--"' not in html
    (search,) = data_of(html)["searches"]
    assert HOSTILE in search["details"] and search["kernel"] == HOSTILE


def test_long_texts_are_cut_and_say_so(tmp_path, no_cache):
    long = "x" * 100_000
    detail = "x" * 15_000  # a trial keeps all of it
    trials = [trial(1, config={long: long}), trial(2, Status.CRASHED, detail=detail, config={long: "y"})]
    html = report_html(gather([journal(tmp_path / "a.jsonl", trials, kernel=long)]))
    bare = len(page_html("", {"searches": []}))
    assert len(html) < bare + 20_000
    assert "13,000 more characters" in data_of(html)["searches"][0]["details"][1]


def test_ten_thousand_trials_stay_small(tmp_path, no_cache):
    trials = [
        trial(n, time_ms=1 + n / 7, config={f"P{p}": n // 9 ** (p % 5) % 9 for p in range(12)}, cost_s=n / 3)
        for n in range(10_000)
    ]
    html = report_html(gather([journal(tmp_path / "a.jsonl", trials)]))
    assert len(html) < 6e6


@pytest.mark.parametrize(
    ("checked", "said"),
    [
        ({"output out": "", "other sizes": "", "many runs": ""}, "yes"),
        ({"output out": "", "other sizes": "", "many runs": "no time was left"}, "in part"),
        (
            {"output out": "", "output other": "not returned", "other sizes": ""},
            "in part",
        ),
        ({"output out": "", "other sizes": "", "larger sizes": "an index of x overflows"}, "yes"),
        ({"output out": "the reference does not return it", "other sizes": ""}, "no"),
        ({}, "in part"),
    ],
    ids=str,
)
def test_a_report_says_yes_only_if_all_was_checked(tmp_path, checked, said):
    provenance = replace(PROVENANCE, checked=checked)
    write(tmp_path, DEVICE, record(replace(entry(64), provenance=provenance)))
    (search,) = data_of(report_html(gather(["reduce"], tmp_path)))["searches"]
    verified = headline(search)["Verified"]
    assert verified["value"] == said and all(
        name in verified["note"] for name in checked if name != "larger sizes"
    )


def test_the_page_loads_nothing(tmp_path, no_cache):
    html = report_html(gather([journal(tmp_path / "a.jsonl", [trial(1)])]))
    assert "default-src 'none'" in html.replace("&#x27;", "'")
    assert not re.search(r"<(link|img|iframe|object)\b|src=|@import|url\(", html)


def test_embedded_json_has_no_markup():
    text = embedded({"a": "</script><!--<script>"})
    assert "<" not in text and json.loads(text) == {"a": "</script><!--<script>"}


def test_a_recorded_file_and_a_kernel_of_the_cache_make_reports(tmp_path):
    done = run_in_process(ROOT, "report", str(T4), "-o", str(tmp_path / "t4.html"))
    assert done.returncode == 0, done.stderr
    (search,) = data_of((tmp_path / "t4.html").read_text())["searches"]
    assert headline(search)["Verified"]["value"] == "no"
    done = run_in_process(ROOT, "report", "reduce", "--cache", "cache", "-o", str(tmp_path / "reduce.html"))
    assert done.returncode == 0, done.stderr
    searches = data_of((tmp_path / "reduce.html").read_text())["searches"]
    (search,) = [one for one in searches if one["device"] == "NVIDIA H200" and "int32" in str(one["problem"])]
    assert "of the memory bandwidth" in headline(search)["Memory rate"]["note"]
    assert float(headline(search)["Over the default"]["value"].split()[0]) > 1


def test_several_devices_are_compared(tmp_path, no_cache):
    one = journal(tmp_path / "a.jsonl", [trial(1, time_ms=1.0), trial(2, time_ms=2.0)], device="GPU A")
    other = journal(tmp_path / "b.jsonl", [trial(1, time_ms=4.0), trial(2, time_ms=3.0)], device="GPU B")
    found = report_json(gather([one, other]))
    one, other = (f"gpu-{name} (imported)" for name in "ab")
    assert found["comparison"]["matrix"] == {one: {one: 1.0, other: 0.75}, other: {one: 0.5, other: 1.0}}
    assert found["comparison"]["flips"] == {"A": {one: 1, other: 2}}


def test_one_gpu_next_to_a_cpu_is_no_matrix_of_one(tmp_path):
    host = replace(DEVICE, name="Host", slug="host", kind="cpu", backend="opencl")
    for device in (DEVICE, host):
        cache.store(tmp_path, device, record(entry(64)))
    found = report_json(gather(["reduce"], tmp_path))
    assert found["comparison"] is None and found["notCompared"].startswith("Only one GPU has a result")


def test_a_kernel_is_shown_with_its_newest_journal(tmp_path, monkeypatch):
    """The cache has neither failures nor order."""
    known = record(entry(64))
    cache.store(tmp_path / "cache", DEVICE, known)
    monkeypatch.chdir(tmp_path)
    (of_cache,) = gather([known.kernel], tmp_path / "cache").searches
    assert of_cache.is_cached
    (tmp_path / "runs").mkdir()
    trials = [trial(1), trial(2, Status.TIMEOUT)]
    journal(tmp_path / f"runs/{known.kernel}.a.jsonl", trials, kernel=known.kernel)
    found = gather([known.kernel], tmp_path / "cache").searches
    assert [one.is_cached for one in found] == [False, True]
    assert [one.status for one in found[0].trials] == [Status.OK, Status.TIMEOUT]
    same = {"device": DEVICE.name, "sizes": sizes_text(dict(of_cache.sizes)), "dtype": of_cache.dtype}
    path = tmp_path / f"runs/{known.kernel}.a.jsonl"
    head, *rows = path.read_text().splitlines(keepends=True)
    path.write_text(json.dumps(json.loads(head) | same) + "\n" + "".join(rows))
    assert [one.is_cached for one in gather([known.kernel], tmp_path / "cache").searches] == [False]


def test_shipped_results_are_shown_where_there_are_no_own_ones_or_their_cache_is_named(tmp_path, monkeypatch):
    def devices(cache=None):
        return {one.device_name for one in gather(["reduce"], cache).searches}

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOTUNE_CACHE", raising=False)
    shipped = ROOT / "cache"
    assert "NVIDIA H200" in devices() and len(devices()) > 1
    cache.store("cache", DEVICE, cache.read_record(str(shipped / "nvidia-h200/reduce.json")))
    assert devices() == {DEVICE.name}
    (tmp_path / "runs").mkdir()
    journal(tmp_path / "runs/reduce.a.jsonl", [trial(1)], kernel="reduce")
    assert devices() == {DEVICE.name, "Fake GPU"}
    (tmp_path / "cache").rename(tmp_path / "elsewhere")
    assert devices() == {"Fake GPU"} and "NVIDIA H200" in devices(shipped)


def test_the_folder_of_a_report_is_made(tmp_path):
    done = run_in_process(ROOT, "report", str(EXCERPT / "A100_T4.json"), "-o", str(tmp_path / "a/b.html"))
    assert done.returncode == 0 and (tmp_path / "a/b.html").is_file()


def test_a_report_replaces_a_report_and_nothing_else(tmp_path):
    path = journal(tmp_path / "a.jsonl", [trial(1)])
    for verb in ("wrote", "replaced"):
        done = run_in_process(tmp_path, "report", path, "-o", "r.html")
        assert done.returncode == 0 and done.stdout.startswith(f"{verb} r.html: 1 trial ("), done.stderr
    before = (tmp_path / "a.jsonl").read_bytes()
    done = run_in_process(tmp_path, "report", path, "-o", "a.jsonl")
    assert done.returncode == 2 and "a.jsonl: exists and is not a report" in done.stderr
    assert (tmp_path / "a.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.jsonl", "no such file"),
        ("no_such_kernel", "no results for a kernel"),
        ("README.md", "not recorded results, such as a journal of a search in runs/"),
    ],
)
def test_bad_names_are_told_in_a_sentence(tmp_path, name, said):
    done = run_in_process(ROOT, "report", name, "-o", str(tmp_path / "r.html"))
    assert done.returncode in (1, 2) and said in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "r.html").exists()


def test_a_space_of_other_parameters_is_refused(tmp_path):
    done = run_in_process(
        ROOT, "report", str(T4), "--space", "spaces/reduce.yaml", "-o", str(tmp_path / "r.html")
    )
    assert done.returncode == 2 and "its parameters are not those of the trials" in done.stderr


def test_the_command_runs_a_configuration_of_the_journal(tmp_path, no_cache, searched_folder):
    """What the page offers to copy is what `run` accepts."""
    (path,) = (searched_folder.path / "runs").glob("double.*.jsonl")
    gathered = gather([str(path)], space=searched_folder.space)
    (search,) = report_json(gathered)["searches"]
    command = f"{search['runCommand']} 'A=2,B=1' --device fake --json"
    assert "--size n=1000 --dtype int32" in command
    done = searched_folder.run(*shlex.split(command)[1:])
    assert done.returncode == 0, done.stderr
    (packaged_one, *_) = report_json(gather(["transpose"], ROOT / "cache"))["searches"]
    assert packaged_one["runCommand"].startswith("autotune run transpose --size ")
    assert packaged_one["diagnoseCommand"].startswith("autotune diagnose transpose --size ")


@pytest.mark.parametrize(
    ("note", "figures"),
    [
        (
            "29.45 ms (GTX 1060), 3.77 GB/s\n  (GTX 280)",
            [(29.45, "ms", "GTX 1060"), (3.77, "GB/s", "GTX 280")],
        ),
        ("4 to 5 us (Fermi)", [(0.0045, "ms", "Fermi")]),
        ("0.122 ms, 4.39 TB/s for 134 M integers (H200)", [(0.122, "ms", "H200"), (4390, "GB/s", "H200")]),
        ("about 2 us in the sources; 4 loads of 16 bytes", []),
        ("7 msec (A)", []),
    ],
)
def test_the_figures_of_sources_are_read_in_one_unit(note, figures):
    assert source_figures(note) == figures


def test_a_roofline_has_the_ceilings_of_the_device():
    searches = report_json(gather(["bicgk"], ROOT / "cache"))["searches"]
    search = next(one for one in searches if one["device"] == "NVIDIA H200")
    (name, gflops, clock), (_, additions, _) = search["ceilings"]
    assert name == "float32 multiply-adds" and gflops == pytest.approx(67e3, rel=0.01) == 2 * additions
    assert clock == "calculated for 1,980 MHz, the boost clock of NVIDIA H100"
    assert "% of the peak of float32 multiply-adds" in headline(search)["Arithmetic rate"]["note"]


def test_a_ceiling_is_at_the_clock_that_trials_saw(tmp_path):
    device = replace(DEVICE, architecture="sm_90", compute_units=100)
    cache.store(tmp_path, device, record(entry(64)))
    config = {**DEFAULT, "BLOCK": 64}
    measured = replace(trial(1).measurement, conditions={"sm_clock_mhz": 1000})
    tried = replace(trial(1, config=config), measurement=measured)
    path = journal(tmp_path / "a.jsonl", [tried], kernel="reduce", device=device.name)
    (search,) = report_json(gather([path], tmp_path))["searches"]
    assert search["ceilings"] == [
        ["int32 additions", 6400, "calculated for 1,000 MHz, the highest clock of the trials"]
    ]


def test_a_limit_that_all_trials_share_is_told(tmp_path):
    """The page then has an occupancy, and says what limits it."""
    cache.store(tmp_path, replace(DEVICE, architecture="sm_90"), record(entry(64)))
    trials = [
        replace(trial(number), config=Config({**DEFAULT, "BLOCK": 32, "VECTOR": number}), registers=16)
        for number in (1, 2)
    ]
    path = journal(tmp_path / "a.jsonl", trials, kernel="reduce", device=DEVICE.name)
    (search,) = report_json(gather([path], tmp_path))["searches"]
    assert search["limits"] == ["blocks"] and search["columns"]["limit"] == [0, 0]


def test_measured_ceilings_come_before_calculated_ones(tmp_path):
    cache.store(tmp_path, DEVICE, record(entry(64)))
    measured = [
        Ceiling("memory read", BYTES, 5e11, {}, {}),
        Ceiling("int32 multiply-add", OPERATIONS, 2e12, {}, {}),
    ]
    (tmp_path / DEVICE.slug / FILE).write_text(ceilings_text(measured, "2026-01-01T00:00:00+00:00"))
    (search,) = report_json(gather(["reduce"], tmp_path))["searches"]
    assert search["ceilings"] == [["int32 multiply-adds", 2000, "measured"]]
    assert search["bandwidth"] == {"gb_per_s": 500, "measured": True}


@pytest.mark.parametrize(("share", "said"), [(0.997, "99.7% of"), (0.0042, "0.42% of")])
def test_the_share_of_a_peak_is_a_plain_number(tmp_path, share, said):
    best = replace(entry(64), work_flops=share * 2e9, time_ms=1.0, interval_ms=(1.0, 1.0))
    cache.store(tmp_path, DEVICE, record(best))
    measured = [Ceiling("int32 multiply-add", OPERATIONS, 2e12, {}, {})]
    (tmp_path / DEVICE.slug / FILE).write_text(ceilings_text(measured, "2026-01-01T00:00:00+00:00"))
    (search,) = report_json(gather(["reduce"], tmp_path))["searches"]
    assert headline(search)["Arithmetic rate"]["note"].startswith(said)


@pytest.mark.parametrize(
    ("architecture", "dtype", "tflops"),
    [
        *(("sm_75", "float32", 8.1), ("sm_80", "float32", 19.5), ("sm_80", "float64", 9.7)),
        *(("sm_86", "float32", 31.2), ("sm_89", "float32", 30.3), ("sm_90", "float64", 33.5)),
        *(("sm_90", "float32", 67), ("sm_100", "float32", 75), ("sm_120", "float32", 104.8)),
    ],
)
def test_peak_rates_are_those_of_the_data_sheets(architecture, dtype, tflops):
    device = ARCHITECTURES[architecture].device
    assert peak_rates(device, dtype)[0].gflops == pytest.approx(1e3 * tflops, rel=0.01)


@pytest.mark.parametrize(
    ("architecture", "name", "units", "mhz", "tflops"),
    [
        ("sm_80", "NVIDIA A100-SXM4-40GB", 108, 1410, 312),
        ("sm_86", "NVIDIA A10", 72, 1695, 125),
        ("sm_86", "NVIDIA RTX A6000", 84, 1800, 154.8),
        ("sm_86", "NVIDIA GeForce RTX 3090", 82, 1695, 71),
        ("sm_89", "NVIDIA L4", 58, 2040, 121),
        ("sm_89", "NVIDIA L20", 92, 2520, 119.5),
        ("sm_89", "NVIDIA L40", 142, 2490, 181),
        ("sm_89", "NVIDIA L40S", 142, 2520, 362),
        ("sm_89", "NVIDIA GeForce RTX 4090", 128, 2520, 165.2),
        ("sm_90", "NVIDIA H100 80GB HBM3", 132, 1830, 989.4),
        ("sm_90", "NVIDIA H20", 78, 1830, 148),
        ("sm_120", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 188, 2617, 503.8),
        ("sm_120", "NVIDIA GeForce RTX 5090", 170, 2407, 209.5),
    ],
)
def test_tensor_rates_are_those_of_the_white_papers_and_data_sheets(architecture, name, units, mhz, tflops):
    """At the clock of the architecture's example GPU; a product line may have a part of the rate."""
    device = replace(ARCHITECTURES[architecture].device, name=name, compute_units=units)
    clock = 1830 if architecture == "sm_90" else boost_mhz(architecture)
    assert tensor_operations_per_s(device) * mhz / clock == pytest.approx(1e12 * tflops, rel=0.025)


def test_the_head_says_where_times_come_from_and_what_makes_them_doubtful(tmp_path, folder):
    folder.search("--budget", "5", "--seed", "7")
    (path,) = (folder.path / "runs").glob("double.*.jsonl")
    with path.open("a") as file:
        file.write(json.dumps({"stages": {"timing": 1.0}, "doubts": ["it was hot", HOSTILE]}) + "\n")
    (search,) = report_json(gather([str(path)], folder.path / "cache"))["searches"]
    origin = dict(search["provenance"])
    assert origin["search"] == "surrogate, seed 7, 5 trials" and origin["by"].startswith("autotune ")
    assert origin["driver"] and origin["tuned"].startswith("20")
    verdict, reasons = search["trust"]
    assert verdict == "Trust this result with care" and reasons[-2:] == ["It was hot", HOSTILE]


def test_a_journal_alone_says_what_its_header_has(tmp_path, no_cache):
    path = journal(tmp_path / "a.jsonl", [trial(1)], driver="1.2", compiler="cc 3")
    (search,) = report_json(gather([path]))["searches"]
    assert search["provenance"] == [["driver", "1.2"], ["compiler", "cc 3"]]


CHECKED = {"output out": PASSED, OTHER_SIZES: PASSED}


@pytest.mark.parametrize(
    ("noise", "high_ms", "checks", "finalists", "verdict", "reason"),
    [
        (0.001, 1.02, CHECKED, 2, "This result can be trusted", "2 finalists ran in turns"),
        (0.2, 1.02, CHECKED, 2, "Trust this result with care", "The machine was unsteady: 20% noise"),
        (0.001, 2.0, CHECKED, 2, "Trust this result with care", "Its time is not certain: 1 to 2 ms"),
        (0.001, 1.02, {}, 2, "Trust this result with care", "Verified: in part"),
        (0.001, 1.02, CHECKED, 0, "This is not a final result", "missing is the last round"),
    ],
)
def test_the_head_says_how_far_the_result_can_be_trusted(
    tmp_path, no_cache, noise, high_ms, checks, finalists, verdict, reason
):
    trials = [trial(1, time_ms=1.0), trial(2, time_ms=1.2)]
    samples = Measurement((1.0, 1.01, high_ms) * 4, Rule.LAST_ROUND, noise=noise)
    finals = {one.key: samples for one in trials[:finalists]}
    path = Path(journal(tmp_path / "a.jsonl", trials))
    if finals:
        row = {key: encode_measurement(one) for key, one in finals.items()}
        said = {key: encode_checks(checks) for key in finals}
        with path.open("a") as file:
            file.write(json.dumps({"finals": row, "checks": said}) + "\n")
    (search,) = report_json(gather([str(path)]))["searches"]
    assert search["trust"][0] == verdict and any(reason in one for one in search["trust"][1])


def test_a_report_without_a_time_has_no_result_to_trust(tmp_path, no_cache):
    (search,) = report_json(gather([journal(tmp_path / "a.jsonl", [trial(1, Status.TIMEOUT)])]))["searches"]
    assert search["trust"][0] == "There is no result"


def test_what_was_explored_is_said_as_the_summary_says_it(folder):
    done = folder.run("search", "double.yaml", "-d", "fake", "--budget", "5")
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("explored ")]
    (path,) = (folder.path / "runs").glob("double.*.jsonl")
    (search,) = report_json(gather([str(path)], folder.path / "cache"))["searches"]
    assert "valid configurations" in said and headline(search)["Trials"]["note"].startswith(said)


@pytest.mark.parametrize(
    ("once_ms", "factors"),
    [
        ((2.0, 1.2), "0.25 to 1"),  # faster in turns, one of them far more: chance chose them
        ((0.36, 0.86), "1.4"),  # alike: the machine is slower
    ],
)
def test_a_drift_between_search_and_last_round_is_told(tmp_path, no_cache, once_ms, factors):
    trials = [trial(number, time_ms=ms) for number, ms in enumerate(once_ms, 1)]
    finals = {
        one.key: Measurement((ms,) * 12, Rule.LAST_ROUND) for one, ms in zip(trials, (0.5, 1.2), strict=True)
    }
    (search,) = report_json(gather([journal(tmp_path / "a.jsonl", trials, finals)]))["searches"]
    told = f"The finalists took {factors} times as long in the last round as in the search"
    assert told in search["trust"][1]


def test_a_speedup_is_the_interval_of_the_ratios_in_each_round(tmp_path, no_cache):
    best, default = (trial(n, config=Config({**DEFAULT, "BLOCK": n})) for n in (128, DEFAULT["BLOCK"]))
    cache.store(tmp_path, DEVICE, record(replace(entry(64), config=best.config, time_ms=1.0, ties=())))
    finals = {
        best.key: Measurement((1.0, 1.0, 1.0) * 4, Rule.LAST_ROUND),
        default.key: Measurement((2.0, 3.0, 4.0) * 4, Rule.LAST_ROUND),
    }
    source = entry(64).provenance.source_sha256
    header = {"kernel": "reduce", "n": 64, "device": DEVICE.name, "source": source}
    path = journal(tmp_path / "a.jsonl", [best, default], finals, **header)
    (search,) = report_json(gather([path], tmp_path))["searches"]
    said = headline(search)["Over the default"]
    assert said["value"] == "2 to 4 x"
    assert said["note"] == "95%, by the ratios in each round; medians: 3 x; default: 3 ms (2 to 4)"
    assert search["columns"]["ratio_low"] == [1, 2] and search["columns"]["ratio_high"] == [1, 4]


@pytest.mark.parametrize(("chosen_from", "fewest"), [(1, 6), (2, 7), (8, 9)])
def test_the_ratios_of_enough_rounds_are_an_interval_of_95_percent(tmp_path, no_cache, chosen_from, fewest):
    best, default = (trial(n, config=Config({**DEFAULT, "BLOCK": n})) for n in (128, DEFAULT["BLOCK"]))
    cache.store(tmp_path, DEVICE, record(replace(entry(64), config=best.config, time_ms=1.0, ties=())))
    header = {
        "kernel": "reduce",
        "n": 64,
        "device": DEVICE.name,
        "source": entry(64).provenance.source_sha256,
    }
    for rounds in (fewest - 1, fewest):
        finals = {
            best.key: Measurement((1.0,) * 12, Rule.LAST_ROUND, chosen_from=chosen_from),
            default.key: Measurement((4.0,) * rounds, Rule.LAST_ROUND, chosen_from=chosen_from),
        }
        path = journal(tmp_path / "a.jsonl", [best, default], finals, **header)
        (search,) = report_json(gather([path], tmp_path))["searches"]
        note = headline(search)["Over the default"]["note"]
        assert note.startswith("95%," if rounds == fewest else f"all ratios of {rounds} rounds;")
        assert search["fewestRounds"] == fewest


def test_a_default_that_left_after_few_rounds_has_no_interval_of_95_percent(tmp_path, no_cache):
    best, default = (trial(n, config=Config({**DEFAULT, "BLOCK": n})) for n in (128, DEFAULT["BLOCK"]))
    cache.store(tmp_path, DEVICE, record(replace(entry(64), config=best.config, time_ms=1.0, ties=())))
    finals = {
        best.key: Measurement((1.0,) * 12, Rule.LAST_ROUND),
        default.key: Measurement((4.0, 3.0, 4.0), Rule.LAST_ROUND),
    }
    source = entry(64).provenance.source_sha256
    header = {"kernel": "reduce", "n": 64, "device": DEVICE.name, "source": source}
    path = journal(tmp_path / "a.jsonl", [best, default], finals, **header)
    (search,) = report_json(gather([path], tmp_path))["searches"]
    said = headline(search)["Over the default"]
    assert said["value"] == "3 to 4 x" and said["note"].startswith("all ratios of 3 rounds; medians: 4 x; ")
    assert search["columns"]["rounds"] == [12, 3]


def test_a_default_that_cannot_be_told_from_the_best_is_not_beaten(tmp_path, folder):
    folder.write(KERNEL.replace("(A - 5) ** 2", "10"))  # all are as fast
    folder.search("--budget", "4")
    (path,) = (folder.path / "runs").glob("double.*.jsonl")
    (search,) = report_json(gather([str(path)], folder.path / "cache"))["searches"]
    said = headline(search)["Over the default"]
    assert said["value"] in ("none", "not distinguishable")


def test_a_default_within_the_noise_is_not_beaten_where_the_cache_keeps_no_tie_of_it(tmp_path):
    best, default = (trial(n, config=Config({**DEFAULT, "BLOCK": n})) for n in (128, DEFAULT["BLOCK"]))
    known = replace(entry(64), config=best.config, time_ms=1.0, default_time_ms=1.4, ties=())
    cache.store(tmp_path, DEVICE, record(known))
    finals = {
        best.key: Measurement((0.8, 1.0, 1.9) * 4, Rule.LAST_ROUND, noise=0.5),
        default.key: Measurement((1.0, 1.4, 1.9) * 4, Rule.LAST_ROUND),
    }
    source = known.provenance.source_sha256
    header = {"kernel": "reduce", "n": 64, "device": DEVICE.name, "source": source}
    path = journal(tmp_path / "a.jsonl", [best, default], finals, **header)
    (search,) = report_json(gather([path], tmp_path))["searches"]
    said = headline(search)["Over the default"]
    assert said["value"] == "not distinguishable"
    assert said["note"] == "1 to 1.4 x (95%, by the ratios in each round); default: 1.4 ms (1 to 1.9)"


def test_a_last_round_of_the_best_and_the_default_has_no_other_finalists(tmp_path):
    best, default = (trial(n, config=Config({**DEFAULT, "BLOCK": n})) for n in (128, DEFAULT["BLOCK"]))
    known = replace(entry(64), config=best.config, time_ms=1.0, ties=())
    cache.store(tmp_path, DEVICE, record(known))
    finals = {one.key: Measurement((ms,) * 4, Rule.LAST_ROUND) for one, ms in ((best, 1.0), (default, 2.0))}
    header = {"kernel": "reduce", "n": 64, "device": DEVICE.name, "source": known.provenance.source_sha256}
    path = journal(tmp_path / "a.jsonl", [best, default], finals, **header)
    (search,) = report_json(gather([path], tmp_path))["searches"]
    assert headline(search)["Ties"]["note"] == "the last round timed the best and the default only"


def test_times_of_the_last_round_have_their_intervals(tmp_path, no_cache):
    trials = [trial(1, time_ms=1.0), trial(2, time_ms=2.0)]
    finals = {trials[0].key: Measurement((1.0, 1.01, 1.02) * 4, Rule.LAST_ROUND)}
    (search,) = report_json(gather([journal(tmp_path / "a.jsonl", trials, finals)]))["searches"]
    assert search["columns"]["low_ms"] == [1, None] and search["columns"]["high_ms"] == [1.02, None]
