"""Journals, caches and keys of version 1, as they were first written: these files are never changed.

Devices and verification say more of themselves over time, and rows then do not count for a search. So what
is compared here lies below that: the same inputs give the same key, header and text.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.compilers.binary_cache import BinaryCache, content_key
from autotune.compilers.source_text import read_source
from autotune.core.trials import Binary
from autotune.devices import Address
from autotune.evaluation.identity import header_sizes, journal_header, trial_key
from autotune.evaluation.instance import InstanceMaker, environment
from autotune.evaluation.journal import read_journal
from autotune.evaluation.journal_rows import encode_trial
from autotune.serving.cache_schema import device_text, parse_device, parse_record, record_text
from autotune.serving.miss_log import read_misses
from autotune.space import bind, load_space, problem_of
from autotune.tuning.options import Options
from autotune.tuning.prior_results import gather_priors
from autotune.tuning.task import TuningTask

FOLDER = Path(__file__).parent / "identity-1"
ROWS = {"double": 17, "double.pareto": 17, "sums": 8}
DEVICES = {"fake": "fake-gpu", "opencl": "cpu-intel-xeon-processor-2-50ghz"}
ENVIRONMENT = ("device", "backend", "driver", "runtime", "compiler")


def bound(found):
    """The space of a journal on the device of its header."""
    file = FOLDER / "cache" / DEVICES[found["backend"]] / "device.json"
    device = parse_device(file.read_text(), str(file))
    spec = load_space(FOLDER / f"{found['kernel']}.yaml")
    space = bind(spec, device, problem_of(spec, device, header_sizes(found), found["dtype"]))
    return TuningTask(Address(found["backend"], 0), device, spec, read_source(spec.source), space)


@pytest.mark.parametrize("name", ROWS)
def test_every_row_has_the_key_and_the_text_that_its_configuration_has_today(name):
    path = FOLDER / f"{name}.jsonl"
    found, trials, *_ = read_journal(path)
    known = bound(found)
    maker = InstanceMaker(
        known.space,
        known.source,
        known.dialect,
        environment(known.device, found["compiler"], known.spec.measure),
    )
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    finals = {key: value for row in rows for key, value in row.get("finals", {}).items()}
    assert len(trials) == ROWS[name] and finals
    written = {row["trial"]["key"]: row["trial"] for row in rows if "trial" in row}
    for trial in trials:
        made = maker.make(trial.config)
        key = trial_key(
            known.source.sha256,
            trial.config,
            made.options,
            compiler=known.spec.compiler,
            workloads=(*made.verify_workloads, made.workload),
            environment={word: found[word] for word in ENVIRONMENT},
        )
        assert trial.key == key
        text = json.dumps(encode_trial(trial))
        assert text == json.dumps(written[key])


@pytest.mark.parametrize("name", ROWS)
def test_the_header_is_that_of_the_same_search_today(name):
    found, *_ = read_journal(FOLDER / f"{name}.jsonl")
    known = bound(found)
    assert set(ENVIRONMENT) <= set(environment(known.device, "any"))
    own = {word: value for word, value in found.items() if word not in ENVIRONMENT}
    assert own.pop("journal") == 1 and own.pop("verification") == "3"
    assert own == journal_header(known.spec, known.space.problem, known.source.sha256, known.reference.sha256)


def test_journals_are_what_other_searches_start_from(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found, *_ = read_journal(FOLDER / "sums.jsonl")
    known = bound(found)
    elsewhere = replace(known, device=replace(known.device, name="Other CPU"))
    Path("runs").symlink_to(FOLDER)
    (prior,) = gather_priors(elsewhere, Options(cache=tmp_path))
    assert prior.origin == "Intel Xeon Processor @ 2.50GHz, m=64, n=4096, float32"
    assert len(prior.results) == ROWS["sums"]


@pytest.mark.parametrize("file", sorted(FOLDER.glob("cache/**/*.json")), ids=lambda file: file.parent.name)
def test_a_cache_is_read_and_written_byte_for_byte(file):
    is_device = file.name == "device.json"
    parse, text_of = (parse_device, device_text) if is_device else (parse_record, record_text)
    text = file.read_text(encoding="utf-8")
    assert text_of(parse(text, str(file))) == text


def test_the_list_of_questions_is_read_and_written_byte_for_byte():
    questions = read_misses(FOLDER / "cache")
    assert "".join(one.line for one in questions) == (FOLDER / "cache" / "wanted.jsonl").read_text()


def test_a_binary_is_found_under_its_name(tmp_path):
    key = content_key("NVRTC 13.0.48 sm_90", "int main;", ["-O3", "-lineinfo"])
    assert key == "1a594e629e4e056dad793fb44c2ee9ce0158fc61e7952946c7f956b69d35fe18"
    (tmp_path / "k").write_bytes(
        b'autotune binary\nh 5\xd5\x0c\xd0\xa9\xbb\x1b\x80`s\xce"5\xd19)>A\x97)\xd1P\x0b\xcd\xc9f\r\x8aN\x94'
        b'{"sha256": "cd", "log": "log", "compile_ms": 1.5, "registers": 32, "spill_bytes": 0, '
        b'"shared_bytes": 128, "cached": false, "key": "k"}\nab'
    )
    assert BinaryCache(tmp_path).get("k") == Binary(b"ab", "cd", "log", 0.0, 32, 0, 128, cached=True)
