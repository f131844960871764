"""The searcher that has ten runs: what it begins with, what it learns, and how well it does on recordings."""

import math
from pathlib import Path

import numpy as np
import pytest
from replay import ReplayTrials, load, prepare, priors_for, replay

from autotune.core.records import Config
from autotune.core.trials import Status
from autotune.errors import NoMoreTrials
from autotune.hardware.names import Traits
from autotune.interop import Recording, imported_trial
from autotune.interop.recording import domains
from autotune.searchers import learns_from_priors, make_searcher
from autotune.searchers.base import PriorResults
from tests.recorded_files import FOLDER, needs_whole

BLOCKS, TILES = (32, 64, 128, 256, 512), (1, 2, 4, 8)
CONFIGS = [Config({"BLOCK": b, "TILE": t, "SHARED": s}) for b in BLOCKS for t in TILES for s in (False, True)]
AMPERE = Traits("gpu", "nvidia", "sm_86")


def time_ms(config, block=128, tile=2, shared=1.0, unit=1.0):
    """A bowl; on some devices shared memory costs, on others it pays."""
    away = abs(math.log2(config["BLOCK"] / block)) + abs(math.log2(config["TILE"] / tile))
    return unit * (1.0 + 0.3 * away) * (shared if config["SHARED"] else 1.0)


def recorded(times_ms, device="NVIDIA A100"):
    trials = tuple(
        imported_trial(config, Status.OK if t else Status.LAUNCH_ERROR, t, cost_s=1.0)
        for config, t in zip(CONFIGS, times_ms, strict=True)
    )
    names = ("BLOCK", "TILE", "SHARED")
    return prepare(Recording("bowl", device, None, domains(names, CONFIGS), trials))


def prior(device="NVIDIA A40", among=CONFIGS, traits=AMPERE, **bowl):
    return PriorResults(device, tuple((config, time_ms(config, **bowl)) for config in among), traits)


def tried(target, priors, budget=10, seed=0):
    run = replay(target, make_searcher("adopt", priors=priors), budget=budget, seed=seed)
    return [target.space.config(row) for row in run.rows]


def best(target, configs):
    times = [target.times_ms[target.space.index(config)] for config in configs]
    return np.nanmin(target.times_ms) / np.nanmin(times)


def test_it_learns_from_priors():
    assert learns_from_priors("adopt")


def test_the_first_run_is_the_best_of_the_device_that_is_closest():
    target = recorded([time_ms(config) for config in CONFIGS])
    amd = prior("AMD W6600", traits=Traits("gpu", "amd", "gfx1032"), block=32)
    nvidia = prior(block=256)
    for priors in ((amd, nvidia), (nvidia, amd)):
        assert tried(target, priors, 1)[0]["BLOCK"] == 256


def test_what_one_device_prefers_is_tried_where_another_is_like_it():
    """Shared memory pays on one of the known devices and here, and costs on the other."""
    target = recorded([time_ms(config, shared=0.5, unit=7.0) for config in CONFIGS])
    priors = (prior(shared=1.5), prior("AMD W6600", shared=0.6, traits=Traits("gpu", "amd", "gfx1032")))
    assert best(target, tried(target, priors, 5)) == 1.0


def test_a_few_runs_find_what_no_other_device_has_as_its_best():
    target = recorded([time_ms(config, block=64, tile=4) for config in CONFIGS])
    priors = (prior(block=128, tile=2), prior("AMD W6600", block=32, tile=4, shared=1.4))
    assert best(target, tried(target, priors)) == 1.0


def test_a_single_result_from_elsewhere_is_enough():
    target = recorded([time_ms(config) for config in CONFIGS])
    one = prior(among=[config for config in CONFIGS if config["BLOCK"] == 64][:1])
    runs = tried(target, (one,))
    assert runs[0] == one.results[0][0] and len(set(runs)) == 10
    assert best(target, runs) > best(target, runs[:1])


def test_what_fails_here_is_left_and_what_failed_everywhere_comes_last():
    times = [None if config["SHARED"] else time_ms(config) for config in CONFIGS]
    target = recorded(times)
    assert best(target, tried(target, (prior(shared=0.5),))) == 1.0
    failing = PriorResults("other", tuple((c, None if c["BLOCK"] == 32 else time_ms(c)) for c in CONFIGS))
    assert all(config["BLOCK"] != 32 for config in tried(target, (failing,)))


def test_where_everything_fails_the_whole_space_is_tried():
    target = recorded([None] * len(CONFIGS))
    assert set(tried(target, (prior(),), len(CONFIGS))) == set(CONFIGS)


def test_it_goes_on_until_nothing_is_left_and_lets_the_end_of_the_budget_through():
    target = recorded([time_ms(config) for config in CONFIGS])
    assert set(tried(target, (prior(),), 1000)) == set(CONFIGS)

    spent = ReplayTrials(target, budget=0)
    with pytest.raises(NoMoreTrials):
        make_searcher("adopt", priors=(prior(),)).search(target.space, spent, seed=0)


def test_the_seed_plays_no_part_and_the_order_of_what_is_known_neither():
    target = recorded([time_ms(config, block=64, shared=0.7) for config in CONFIGS])
    one, two = prior(shared=1.5), prior("AMD W6600", traits=Traits("gpu", "amd", None), block=256)
    runs = [tried(target, priors, seed=seed) for priors in ((one, two), (two, one)) for seed in (0, 1)]
    assert all(run == runs[0] for run in runs)


def test_configurations_of_another_space_are_no_knowledge():
    target = recorded([time_ms(config) for config in CONFIGS])
    strange = PriorResults("strange", ((Config({"BLOCK": 7}), 1.0), (CONFIGS[0], None)))
    assert len(set(tried(target, (strange,)))) == 10


@needs_whole
@pytest.mark.parametrize(("kernel", "mean", "worst"), [("convolution", 80, 70), ("dedispersion", 97.5, 94)])
def test_ten_runs_on_a_gpu_left_out_beat_the_top_five_of_each_other(kernel, mean, worst):
    files = [load(path) for path in sorted((Path(FOLDER) / kernel).glob("*_T4.json.gz"))]
    shares = []
    for target in files:
        runs = tried(target, priors_for(target, files, 0))
        assert len(runs) == 10
        shares.append(100 * best(target, runs))
    assert np.mean(shares) >= mean and min(shares) >= worst
