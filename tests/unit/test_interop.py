"""Foreign formats: what is read of them, what is refused, and that nothing is lost on the way through."""

import gzip
import json
import shutil
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest

from autotune.core.trials import Failure, Status
from autotune.errors import InputError
from autotune.evaluation.journal import read_trials
from autotune.interop import journals, read_recording, t4
from autotune.interop import kernel_tuner as kernel_tuner_cache
from tests.recorded_files import CACHE, T4, every_file

WRITERS = {
    "t4": t4.write,
    "kernel-tuner": kernel_tuner_cache.write,
    "journal": journals.write,
}


def written(recording, path):
    """The text of a recording in the format of the file that it was read from."""
    return WRITERS["t4" if "T4" in path.name else "kernel-tuner"](recording)


def through(recording, path, write=t4.write):
    path.write_text(write(recording))
    return read_recording(path)


def edited(source, path, edit):
    data = json.loads(source.read_text())
    edit(data)
    path.write_text(json.dumps(data))
    return path


@every_file
def test_import_export_import_is_the_identity(tmp_path, path):
    recording = read_recording(path)
    (tmp_path / "again.json").write_text(written(recording, path))
    assert read_recording(tmp_path / "again.json") == recording


@every_file
def test_a_journal_keeps_times_costs_and_outcomes(tmp_path, path):
    recording = read_recording(path)
    journal = tmp_path / "imported.jsonl"
    journal.write_text(journals.write(recording))
    again = read_recording(journal)
    assert through(again, tmp_path / "again.jsonl", journals.write).best.config == again.best.config
    assert (again.kernel, again.device, again.sizes) == (recording.kernel, recording.device, recording.sizes)
    for one, other in zip(recording.trials, again.trials, strict=True):
        assert (one.config, one.status, one.time_ms) == (other.config, other.status, other.time_ms)
        assert one.cost_s == pytest.approx(other.cost_s)
    assert len(read_trials(journal)) == len(recording.trials)


@every_file
def test_exported_t4_validates_against_the_schema_of_kernel_tuner(path):
    schema = json.loads(files("kernel_tuner").joinpath("schema/T4/1.0.0/results-schema.json").read_text())
    jsonschema.validate(json.loads(t4.write(read_recording(path))), schema)


def test_both_formats_of_the_same_search_agree():
    one, other = read_recording(T4), read_recording(CACHE)
    outcomes = [{r.config: (r.status, r.time_ms) for r in recording.trials} for recording in (one, other)]
    assert outcomes[0] == outcomes[1]
    assert {r.status for r in one.trials} == {Status.OK, Status.LAUNCH_ERROR, Status.COMPILE_ERROR}
    assert (one.kernel, one.device, one.sizes) == ("convolution", "A100", None)
    assert (other.kernel, other.device) == ("convolution_kernel", "NVIDIA A100-PCIE-40GB")
    assert other.sizes == {"x": 4096, "y": 4096}
    assert other.best.time_ms == min(r.time_ms for r in one.trials if r.time_ms is not None)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_status_has_a_word_in_every_format(write, status):
    recording = read_recording(CACHE)
    failure = None if status is Status.OK else Failure(status, "")
    assert write(replace(recording, trials=(replace(recording.trials[0], failure=failure),)))


def test_costs_are_the_phases_without_the_searchers_own():
    times = json.loads(T4.read_text())["results"][0]["times"]
    trial = read_recording(T4).trials[0]
    phases = times["compilation"] + times["framework"] + times["validation"]
    assert trial.compile_ms == times["compilation"]
    assert trial.cost_s == pytest.approx((phases + sum(times["runtimes"])) / 1e3)
    row = next(iter(json.loads(CACHE.read_text())["cache"].values()))
    parts = ("compile_time", "benchmark_time", "framework_time", "verification_time")
    assert read_recording(CACHE).trials[0].cost_s == pytest.approx(sum(row[part] for part in parts) / 1e3)


def test_compressed_files_are_told_by_their_content(tmp_path):
    path = tmp_path / "A100_T4.json"
    path.write_bytes(gzip.compress(T4.read_bytes()))
    assert read_recording(path).trials == read_recording(T4).trials


@pytest.mark.parametrize("cut", ["}\n}", "\n}"])
def test_a_cache_that_a_run_left_open_is_read(tmp_path, cut):
    text = CACHE.read_text().rstrip()
    assert text.endswith(cut)
    path = tmp_path / "open.json"
    path.write_text(text.removesuffix("}\n}") + ",\n" if cut == "}\n}" else text.removesuffix("}\n}"))
    assert read_recording(path) == read_recording(CACHE)


def test_errors_of_newer_caches_are_read_and_written(tmp_path):
    def newer(data):
        data["objective"] = ["time"]
        for row in data["cache"].values():
            if isinstance(row["time"], str):
                row["__error__"] = row.pop("time")

    path = edited(CACHE, tmp_path / "newer.json", newer)
    recording = read_recording(path)
    assert [r.status for r in recording.trials] == [r.status for r in read_recording(CACHE).trials]
    rows = json.loads(kernel_tuner_cache.write(recording))["cache"].values()
    newer_rows = json.loads(path.read_text())["cache"].values()
    assert [row.get("__error__") for row in rows] == [row.get("__error__") for row in newer_rows]


def test_kernel_tuner_goes_on_from_an_exported_cache(tmp_path):
    from kernel_tuner.util import RuntimeFailedConfig, read_cache

    path = tmp_path / "exported.json"
    path.write_text(kernel_tuner_cache.write(read_recording(T4)))
    cache = read_cache(path, open_cache=True)["cache"]
    failed = [row for row in cache.values() if isinstance(row.get("__error__"), RuntimeFailedConfig)]
    assert len(cache) == 39 and len(failed) == 3
    assert read_recording(path).trials == read_recording(path).trials  # now open-ended, and still read


def test_times_in_other_units_become_milliseconds(tmp_path):
    def in_seconds(data):
        data["metadata"]["timeunit"] = "seconds"
        for row in data["results"]:
            row["times"] = {
                k: [x / 1e3 for x in v] if k == "runtimes" else v / 1e3 for k, v in row["times"].items()
            }
            for item in row["measurements"]:
                if not isinstance(item["value"], str):
                    item["value"] /= 1e3

    path = tmp_path / "convolution" / "A100.json"
    path.parent.mkdir()
    recording = read_recording(edited(T4, path, in_seconds))
    for one, other in zip(recording.trials, read_recording(T4).trials, strict=True):
        assert (one.time_ms, one.cost_s) == (pytest.approx(other.time_ms), pytest.approx(other.cost_s))
    assert through(recording, tmp_path / "again.json") == recording


@pytest.mark.parametrize(
    ("source", "edit", "message"),
    [
        (T4, lambda d: d.update(results=[]), "results: expected an entry for each configuration"),
        (T4, lambda d: d["results"][3].pop("configuration"), "results[3]: expected an object, found 'None'"),
        (
            T4,
            lambda d: d["results"][1]["configuration"].pop("use_cmem"),
            "results[1].use_cmem: expected a number, text or truth value, found 'None'",
        ),
        (T4, lambda d: d["results"][0].update(invalidity="odd"), "results[0].invalidity: expected one of"),
        (
            T4,
            lambda d: d["metadata"].update(timeunit="weeks"),
            "metadata.timeunit: expected a unit: ms, s, us or ns, found 'weeks'",
        ),
        (CACHE, lambda d: d.update(cache={}), "cache: expected an entry for each configuration"),
        (CACHE, lambda d: d.pop("device_name"), "device_name: expected an entry, as Kernel Tuner writes it"),
        (
            CACHE,
            lambda d: [row.pop("time") for row in d["cache"].values()],
            "expected a time or an error; other objectives are not supported",
        ),
        (
            CACHE,
            lambda d: d["tune_params_keys"].append("time"),  # then no row has a time of its own
            "expected a time or an error; other objectives are not supported",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path, source, edit, message):
    path = edited(source, tmp_path / "broken.json", edit)
    with pytest.raises(InputError) as error:
        read_recording(path)
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "not recorded results: expected a journal of autotune, T4 results or a Kernel Tuner cache"),
        (b"[1]", "the file: expected an object"),
        (b"{", "not recorded results, such as a journal of a search in runs/"),
        (b"\x1f\x8bxx", "damaged"),
        (b"\xff\xfe", "not JSON"),
        (b'{"journal":1}\n', "holds no trial"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_recording(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_recording(tmp_path / "none.json")


def test_kernel_and_device_come_from_the_path_unless_the_file_names_them(tmp_path):
    (tmp_path / "gemm").mkdir()
    copy = tmp_path / "gemm" / "H200_T4.json"
    shutil.copy(T4, copy)
    recording = read_recording(copy)
    assert (recording.kernel, recording.device) == ("gemm", "H200")
    assert through(recording, tmp_path / "moved.json") == recording
