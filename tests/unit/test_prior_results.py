"""What a search is told of other devices and problems: from the cache, and from journals."""

from dataclasses import replace

import pytest

from autotune.compilers.source_text import read_source
from autotune.core.records import Config, Parameter, Provenance
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.devices import Address
from autotune.evaluation.journal import Journal
from autotune.serving import cache
from autotune.serving.cache import store
from autotune.space import bind, load_space, problem_of
from autotune.tuning.options import Options
from autotune.tuning.prior_results import gather_priors
from autotune.tuning.task import TuningTask
from tests.cache_example import PROVENANCE, record
from tests.cache_example import entry as cached
from tests.cache_files import write
from tests.space_example import GPU, YAML, write_space

HERE = {"ALGORITHM": "tree", "BLOCK_SIZE": 32, "VECTOR": 1, "UNROLL": False}
OTHER_GPU = replace(GPU, name="Other GPU", slug="other-gpu")


@pytest.fixture
def bound(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = load_space(write_space(tmp_path, YAML))
    space = bind(spec, GPU, problem_of(spec, GPU))
    return TuningTask(Address("fake", 0), GPU, spec, read_source(spec.source), space)


def keep(folder, device, n, times, provenance: Provenance = PROVENANCE):
    """Store a result with its other configurations, fastest first."""
    (best, best_ms), *others = times
    entry = replace(
        cached(n, provenance=provenance),
        config=Config(best),
        time_ms=best_ms,
        default_time_ms=None,
        ties=(),
        measured=tuple((Config(config), time_ms) for config, time_ms in others),
    )
    store(folder, device, record(entry, default=Config(HERE)))


def write_journal(path, device, n, times):
    header = {"kernel": "reduce", "device": device, "sizes": repr([("n", n)]), "dtype": "int32"}
    journal = Journal(path, header)
    for number, (config, time_ms) in enumerate(times):
        failure = None if time_ms else Failure(Status.COMPILE_ERROR, "")
        measured = Measurement((time_ms,), Rule.STEADY) if time_ms else None
        journal.append(Trial(Config(config), f"key {number}", failure, "", measured))
    journal.close()


def test_other_devices_and_sizes_count_and_this_problem_does_not(bound, tmp_path):
    fast, slow, invalid = HERE | {"VECTOR": 2}, HERE, HERE | {"BLOCK_SIZE": 2048}
    n = bound.space.problem.sizes["n"]
    keep(tmp_path / "cache", OTHER_GPU, n, [(fast, 1.0), (slow, 2.0), (invalid, 3.0)])
    keep(tmp_path / "cache", GPU, n, [(fast, 1.0)])
    keep(tmp_path / "cache", GPU, 1000, [(slow, 0.5)])
    other, size = gather_priors(
        bound, Options(cache=tmp_path / "cache", journal=tmp_path / "runs" / "own.jsonl")
    )
    assert other.origin == f"Other GPU, n={n}, int32"
    assert dict(other.results) == {Config(fast): 1.0, Config(slow): 2.0}
    assert (size.origin, size.results) == ("Example GPU, n=1000, int32", ((Config(slow), 0.5),))


def test_of_several_caches_a_device_s_first_counts_and_a_namesake_does_not(bound, tmp_path, monkeypatch):
    near, far = tmp_path / "cache", tmp_path / "shipped"
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setattr(cache, "packaged_folder", lambda _: str(far))
    namesake = replace(record(cached(77)), parameters=(Parameter("WIDTH", (7,)),))
    keep(near, OTHER_GPU, 77, [(HERE, 5.0)])
    keep(far, OTHER_GPU, 77, [(HERE, 50.0)])
    keep(far, GPU, 78, [(HERE, 60.0)])
    write(far, replace(GPU, name="Third GPU", slug="third-gpu"), namesake)
    (near / "damaged").mkdir()
    (near / "damaged/reduce.json").write_text("{")
    first, second = gather_priors(bound, Options(journal=tmp_path / "own.jsonl"))
    assert (first.origin, first.results) == ("Example GPU, n=78, int32", ((Config(HERE), 60.0),))
    assert (second.origin, second.results) == ("Other GPU, n=77, int32", ((Config(HERE), 5.0),))


def test_journals_count_with_their_failures_but_not_the_one_that_is_written(bound, tmp_path):
    failing, working = HERE | {"VECTOR": 2}, HERE
    runs = tmp_path / "runs"
    for name in ("own", "other"):
        write_journal(runs / f"{name}.jsonl", "Other GPU", 77, [(failing, None), (working, 4.0)])
    (runs / "broken.jsonl").write_text("no journal")
    (prior,) = gather_priors(bound, Options(cache=tmp_path / "cache", journal=runs / "own.jsonl"))
    assert prior.origin == "Other GPU, n=77, int32"
    assert dict(prior.results) == {Config(failing): None, Config(working): 4.0}
    (runs / "other.jsonl").unlink()
    assert gather_priors(bound, Options(cache=tmp_path / "cache", journal=runs / "own.jsonl")) == ()


def test_a_journal_and_the_cache_of_one_problem_are_one_source(bound, tmp_path):
    keep(tmp_path / "cache", OTHER_GPU, 77, [(HERE, 1.0)])
    write_journal(tmp_path / "runs" / "a.jsonl", "Other GPU", 77, [(HERE | {"VECTOR": 2}, 3.0)])
    (prior,) = gather_priors(bound, Options(cache=tmp_path / "cache", journal=tmp_path / "own.jsonl"))
    assert dict(prior.results) == {Config(HERE): 1.0, Config(HERE | {"VECTOR": 2}): 3.0}
