"""`Space` and `tune`: the engine of the command line from Python."""

import json
import re
import subprocess
import sys
import threading
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from autotune import InputError, Report, Space, best_config, read_trials, tune, tune_all, tune_sweep
from autotune.devices import listing
from autotune.devices.listing import Listing
from autotune.errors import JournalError, MissingExtra, SetupError, SpaceError
from autotune.serving.miss_log import CacheMiss, record_miss
from tests.conftest import KERNEL, LIMIT_S
from tests.unit.test_search_page import data_of

SETTINGS = {"device": "fake", "budget": 8, "seed": 3}
THREE_LINES = """\
from autotune import Space, tune
result = tune(Space.load("double.yaml"), device="fake", budget=8, seed=3)
result
"""


def parts(**changes):
    """A space of dictionaries and functions."""
    return {
        "kernel": "double",
        "source": KERNEL,
        "dialect": "python",
        "parameters": {"A": range(1, 7), "B": np.arange(3)},
        "constraints": [lambda p: p["A"] + p["B"] <= 7],
        "sizes": {"n": 1000},
        "verify_sizes": [{"n": 17}],
        "dtypes": ["int32"],
        "arguments": [
            {"name": "x", "dtype": "int32", "shape": ["n"], "role": "in", "fill": "inputs"},
            {"name": "y", "dtype": "int32", "shape": ["n"], "role": "out"},
            {"name": "n", "dtype": "int32", "value": "n"},
        ],
        "launch": {"entry": "double", "grid": [1], "block": [1], "arguments": ["x", "y", "n"]},
        "inputs": lambda sizes, rng: {"x": rng.integers(0, 10, sizes["n"])},
        "reference": lambda inputs, sizes: {"y": 2 * inputs["x"]},
    } | changes


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    return folder


def test_a_function_may_compute_a_sample_of_a_large_output(here):
    asked = []

    def reference(inputs, sizes, indices):
        asked.append(len(indices["y"]))
        return {"y": 2 * inputs["x"][indices["y"]]}

    result = tune(Space(**parts(reference=reference, sizes={"n": 50_000})), device="fake", budget=2)
    assert result.found.compares and 17 in asked and 960 < max(asked) <= 1024


def test_tune_tries_and_finds_what_the_command_line_does(here, tmp_path_factory):
    told = []
    engine = "random"  # whose proposals do not depend on how long earlier trials took
    result = tune(Space.load("double.yaml"), strategy=engine, callback=told.append, **SETTINGS)
    journal = next(here.path.glob("runs/*.jsonl"))
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    configs = [row["trial"]["config"] for row in rows if "trial" in row]
    journal.unlink()
    options = ("--budget", "8", "--seed", "3", "--engine", engine)
    found = here.search(*options, "--cache", tmp_path_factory.mktemp("cache"))
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    assert configs == [row["trial"]["config"] for row in rows if "trial" in row]
    assert dict(result.best) == found["config"] and result.time_ms == found["time_ms"]
    assert [dict(trial.config) for trial in told] == configs == [dict(one.config) for one in result.trials]
    assert best_config("double", "fake-gpu", n=1000, cache=here.path / "cache").config == result.best


def test_a_sweep_is_what_the_command_line_does(here):
    found = tune_sweep("double.yaml", {"n": [16, 64, 256]}, **SETTINGS)
    found_there = here.search("--sweep", "n=16:256:x4", "--budget", "6", "--seed", "3")
    assert [one["time_ms"] for one in found_there["results"]] == [
        one.final.median_ms for one in found.results
    ]
    assert [one.sizes for one in found.tables] == [({"n": 16}, {"n": 64}, {"n": 256})]
    with pytest.raises(InputError, match="a sweep has 1 to 1,024 combinations"):
        tune_sweep("double.yaml", {"n": range(1, 2000)}, device="fake")
    with pytest.raises(InputError, match="a sweep minimizes the time"):
        tune_sweep("double.yaml", {"n": [16, 64]}, device="fake", objective="energy")


def test_several_spaces_are_searched_and_those_that_fail_are_named(here):
    text = here.space.read_text()
    (here.path / "other.yaml").write_text(text.replace("kernel: double", "kernel: other"))
    both = tune_all(["double.yaml", "other.yaml"], timeline="t.json", **SETTINGS)
    assert [one.found.task.spec.kernel for one in both] == ["double", "other"]
    (frugal,) = tune_all(["double.yaml"], objective="energy", **(SETTINGS | {"budget": 1}))
    assert frugal.found.objective_name == "energy"
    names = {
        event["args"].get("name")
        for event in json.loads(Path("t.json").read_text())["traceEvents"]
        if "args" in event
    }
    assert {"tune_all", "device process"} <= names
    with pytest.raises(SetupError, match="1 of 2 spaces failed: broken: "):
        (here.path / "broken.yaml").write_text("schema: 1")
        tune_all(["double.yaml", "broken.yaml"], **SETTINGS)


def test_a_known_result_is_adopted_by_each_function(here):
    searched = tune("double.yaml", budget=200, device="fake", seed=3)
    adopted = {"device": "fake", "strategy": "adopt"}
    (known,) = tune_all(["double.yaml"], **adopted)
    alone = tune("double.yaml", **adopted)
    for result in (known, alone):
        assert (result.best, result.time_ms, list(result.trials)) == (searched.best, searched.time_ms, [])


def test_what_programs_requested_is_searched_and_is_no_longer_requested(here):
    for n in (100, 200):
        record_miss(here.path / "cache", CacheMiss("double", "fake-gpu", None, {"n": n}))
    found = tune_all(["double.yaml"], wanted=True, **SETTINGS)
    assert [one.found.task.space.problem.sizes for one in found] == [{"n": 100}, {"n": 200}]
    assert tune_all(["double.yaml"], wanted=True, **SETTINGS) == []


def test_every_model_of_a_cluster_gets_a_result(here, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    monkeypatch.setenv("AUTOTUNE_FAKE_DEVICES", "1,1")
    monkeypatch.setattr(listing, "Listing", Listing)  # not as listed before
    options = {"processes": False, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=2, protocol="tcp", **options) as cluster:
        address = cluster.scheduler_address
        few = SETTINGS | {"budget": 2}
        found = tune_all(["double.yaml"], each_model=True, cluster=address, sizes={"n": 70}, **few)
    assert {one.found.task.device.slug for one in found} == {"fake-gpu", "fake-gpu-2"}
    assert [dict(one.found.task.space.problem.sizes) for one in found] == [{"n": 70}] * 2


def test_further_options_are_as_on_the_command_line(here):
    found = tune("double.yaml", measure="warm", sanitizer=False, timeout_s=9.0, **SETTINGS).found
    assert found.task.spec.measure.cache == "warm"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tune("double.yaml", budget=0), "tune: budget=0: expected"),
        (
            lambda: tune("double.yaml", timout_s=3),
            "tune: unknown argument 'timout_s'; did you mean timeout_s",
        ),
        (lambda: tune("double.yaml", bugdet=3), "tune: unknown argument 'bugdet'; did you mean budget"),
        (lambda: tune("double.yaml", measure="hot"), "tune: measure='hot': expected cold or warm"),
        (lambda: tune("double.yaml", compilers=0), "tune: compilers=0: expected a whole number"),
        (lambda: tune_sweep("double.yaml", {"n": [1]}, seed=-1), "tune_sweep: seed=-1: expected"),
        (lambda: tune_sweep("double.yaml", {"n": [1]}, strategy="no"), "tune_sweep: unknown strategy 'no'"),
        (lambda: tune_all("double.yaml"), "tune_all: spaces='double.yaml': expected paths"),
        (lambda: tune_all([]), "tune_all: spaces=.*: expected paths"),
        (lambda: tune_all(wanted=True, sizes={"n": 3}), "tune_all: sizes=.*: expected None with wanted=True"),
        (lambda: tune_all(["double.yaml"], each_model=True), "tune_all: cluster=None: expected a cluster"),
    ],
)
def test_a_message_about_an_argument_names_the_function(here, call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_several_devices_are_one_argument(here, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_FAKE_DEVICES", "2")
    monkeypatch.setattr(listing, "Listing", Listing)  # not as listed before
    found = tune("double.yaml", devices="fake:0,fake:1", budget=8)
    assert {trial.device.partition("/")[2] for trial in found.trials if trial.device} == {"fake:0", "fake:1"}


def test_a_space_of_dictionaries_and_functions(here, capsys):
    result = tune(Space(**parts()), device="fake")
    assert result.best == {"A": 5, "B": 0}
    assert result.found.compares and len(result.trials) == 6 * 3 - 1
    assert result.speedup == 17
    assert "tried   17 of 17 valid configurations" in repr(result)
    assert repr(result.trials).startswith("17 trials; to_pandas()")
    assert "double on Fake GPU" in capsys.readouterr().err


def test_functions_run_in_this_process(here):
    seen = []

    def reference(inputs, sizes):
        seen.append(sizes["n"])
        return {"y": 2 * inputs["x"]}

    tune(Space(**parts(reference=reference)), device="fake", budget=3)
    assert {17, 1000} <= set(seen)


def test_a_wrong_kernel_is_found_with_a_function_as_the_reference(here):
    wrong = KERNEL.replace("2 *", "(2 + (A == 5)) *")
    result = tune(Space(**parts(source=wrong)), device="fake")
    assert result.best["A"] == 4
    assert result.trials.to_pandas().query("A == 5").status.unique().tolist() == ["wrong_result"]


def test_other_results_of_a_function_are_another_search(here):
    tune(Space(**parts()), device="fake", budget=3)
    again = tune(Space(**parts()), device="fake", budget=3)
    assert again.found.resumed == 3
    other = tune(
        Space(**parts(inputs=lambda sizes, rng: {"x": np.ones(sizes["n"])})), device="fake", budget=3
    )
    assert other.found.resumed == 0


def test_the_default_is_the_first_valid_configuration_unless_it_is_given(here):
    first = {"constraints": ["A > 1", lambda p: p["B"] > 0]}
    assert Space(**parts(**first)).bind("fake").spec.default == {"A": 2, "B": 1}
    given = Space(**parts(default={"A": 3, "B": 2})).bind("fake")
    assert given.spec.default == {"A": 3, "B": 2}


def test_a_stored_result_is_told_in_the_order_of_the_space(here):
    space = Space(**parts(parameters={"B": range(3), "A": range(1, 7)}))
    best = tune(space, device="fake", budget=8, journal="first.jsonl").best
    result = tune(space, device="fake", budget=1, journal="second.jsonl")  # the default, and what is stored
    assert result.best == best and [list(trial.config) for trial in result.trials] == [["B", "A"]] * 2


def test_a_source_may_be_a_file(here):
    assert tune(Space(**parts(source="double.py")), device="fake").best["A"] == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"sizes": {"n": 0}},
            r"Space\('double'\):\d+: sizes.default.n: expected a whole number of at least 1",
        ),
        ({"sizes": {"n": 1e3}}, "sizes.default.n: expected a whole number, found 1000.0; write 1_000"),
        ({"paramters": 1}, "unknown key; did you mean parameters?"),
        ({"constraints": [lambda p: False]}, "no configuration is valid on Fake GPU: none satisfies"),
        ({"source": "missing.py"}, "source: no such file: missing.py"),
        (
            {"sizes": {"n": object()}},
            "is no value of a space: expected numbers, texts, lists or dictionaries",
        ),
    ],
)
def test_a_wrong_space_is_refused_in_one_line(here, changes, message):
    with pytest.raises((SpaceError, InputError), match=message):
        Space(**parts(**changes)).bind("fake")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({}, "returned nothing for x"),
        (None, "returned NoneType, expected a dict"),
        ({"x": ["a"]}, "argument x: elements of type <U1"),
    ],
)
def test_what_inputs_returns_wrongly_names_the_function(here, returned, message):
    with pytest.raises(SetupError, match=rf"^inputs\(\) at n=\d+: {message}"):
        tune(Space(**parts(inputs=lambda sizes, rng: returned)), device="fake")


def test_a_refused_journal_says_what_to_pass_in_python(here):
    tune(Space(**parts()), **SETTINGS)
    edited = Space(**parts(source=KERNEL.replace("2 *", "1 * 2 *")))
    with pytest.raises(JournalError, match=r"\(in Python: fresh=True, journal=FILE\)$"):
        tune(edited, **SETTINGS)
    assert tune(edited, fresh=True, **SETTINGS).best
    tighter = Space(**parts(source=KERNEL.replace("2 *", "1 * 2 *"), verify={"rtol": 0.1}))
    with pytest.raises(JournalError, match=r"\(in Python: keep=True, fresh=True, journal=FILE\)$"):
        tune(tighter, **SETTINGS)
    assert tune(tighter, keep=True, **SETTINGS).found.resumed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"strategy": "genetic_algoritm"},
            "unknown strategy 'genetic_algoritm'; did you mean genetic_algorithm",
        ),
        ({"objective": "speed"}, "objective: unknown name 'speed'"),
        ({"device": "fak"}, "unknown device 'fak'"),
        ({"device": "sm_90,gfx942"}, "compiles for several at once; without it, name one"),
    ],
)
def test_wrong_settings_are_refused(here, settings, message):
    with pytest.raises(InputError, match=message):
        tune("double.yaml", **({"device": "fake"} | settings))


def test_a_strategy_names_its_engine(here):
    usual = here.search("--budget", "8", "--seed", "3")["engine"]
    assert tune("double.yaml", fresh=True, **SETTINGS).found.engine == usual
    assert tune("double.yaml", strategy="random", **SETTINGS).found.engine == "random"
    assert tune("double.yaml", strategy="tpe", **SETTINGS).found.engine == "optuna:tpe"


@pytest.mark.parametrize(
    ("strategy", "module", "extra"), [("tpe", "optuna", "optuna"), ("mls", "kernel_tuner", "kernel-tuner")]
)
def test_a_strategy_without_its_library_names_the_extra_and_runs_nothing(
    here, monkeypatch, strategy, module, extra
):
    monkeypatch.setitem(sys.modules, module, None)
    said = rf"^{module} is not installed; it comes with: pip install '\.\[{extra}\]' in a clone of autotune$"
    with pytest.raises(MissingExtra, match=said):
        tune("double.yaml", strategy=strategy, **SETTINGS)
    assert not (here.path / "runs").exists()


def test_trials_and_their_journal_become_the_same_table(here, monkeypatch):
    result = tune("double.yaml", **SETTINGS)
    table = result.trials.to_pandas()
    assert list(table.columns[:4]) == ["A", "B", "status", "time_ms"] and len(table) == 8
    assert table.equals(read_trials(result.found.journal).to_pandas())
    assert len(read_trials("double")) == 8
    with pytest.raises(InputError, match="No such file"):
        read_trials("missing.jsonl")
    monkeypatch.setitem(sys.modules, "pandas", None)  # which is asked for only where it is needed
    with pytest.raises(MissingExtra, match="pandas is not installed; it comes with: pip install pandas"):
        result.trials.to_pandas()


def test_a_result_and_a_journal_show_their_charts_inline(here):
    result = tune("double.yaml", **SETTINGS)
    shown = result._repr_html_()
    assert shown.startswith("<table><tr><th>A</th><th>B</th><th>time</th></tr>")
    assert "<pre>double on Fake GPU" in shown
    page = unescape(shown.partition('srcdoc="')[2].removesuffix('"></iframe>'))
    (search,) = data_of(page)["searches"]
    assert search["best"] is not None and search["landmarks"] and len(shown) < 250_000
    report = Report(result.found.journal, space="double.yaml")
    assert data_of(report.html)["searches"][0]["columns"] == search["columns"]
    assert 'sandbox="allow-scripts' in report._repr_html_() and "trials" in repr(report)
    report.save("report.html")
    with pytest.raises(InputError, match="is not a report"):
        report.save("double.yaml")
    result.found.journal.unlink()
    assert "<iframe" not in result._repr_html_()


def test_threads_tune_at_the_same_time(here):
    results = {}

    def work(name):
        results[name] = tune(Space(**parts(kernel=name)), device="fake", budget=4)

    threads = [threading.Thread(target=work, args=(f"kernel{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert {tuple(result.best.items()) for result in results.values()} == {
        tuple(results["kernel0"].best.items())
    }


def test_two_threads_cannot_write_one_journal(here):
    refused = []

    def inner(trial):
        if not refused:
            with pytest.raises(JournalError, match="another search is writing this file") as caught:
                tune("double.yaml", **SETTINGS)
            refused.append(caught)

    tune("double.yaml", callback=inner, **SETTINGS)
    assert len(refused) == 1


def test_a_script_needs_no_main_guard(here):
    (here.path / "script.py").write_text(THREE_LINES + "print(dict(result.best))\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=here.path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(dict(tune("double.yaml", **SETTINGS).best))


def test_a_notebook_gives_what_the_command_line_gives(here):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(THREE_LINES), nbformat.v4.new_code_cell("print(dict(result.best))")]
    book = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(book, resources={"metadata": {"path": str(here.path)}})
    client.timeout = client.startup_timeout = int(LIMIT_S)
    client.create_kernel_manager().transport = "ipc"  # another process may take a port before the kernel does
    client.execute()
    outputs = book.cells[0].outputs
    shown = next(output for output in outputs if output.output_type == "display_data").data["text/plain"]
    assert "trials go to " in shown and "last round: " in shown  # as lines of a terminal, which stay
    assert not re.search(r"\d:\d\d\b", shown)  # the line of progress, with its clock, has gone
    assert "<table>" in outputs[-1].data["text/html"]
    assert book.cells[1].outputs[0].text.strip() == str(here.search("--budget", "8", "--seed", "3")["config"])


def test_the_guide_s_example_runs_on_the_cpu(here, root):
    text = (root / "docs/python-api.md").read_text(encoding="utf-8")
    example = text.split("```python\n")[2].partition("```")[0]
    found = {}
    exec(example.replace("tune(space)", "tune(space, device='opencl', budget=2)"), found)
    assert found["result"].found.compares
    assert found["result"].found.counts.total() == 2
