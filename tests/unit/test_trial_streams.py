"""Streams of trials for one device."""

from autotune.core.records import Config
from autotune.core.trials import Status, Trial
from autotune.searchers.streams import in_halves

CONFIGS = [Config({"X": number}) for number in range(12)]


class Compilers:
    """An `evaluate` that notes what it is told to compile, and what it runs."""

    def __init__(self, may_begin_early=True):
        self.may_begin_early = may_begin_early
        self.compiled, self.ran = [], []

    def begin_early(self, configs):
        self.compiled += configs

    def __call__(self, configs):
        self.ran += configs
        return [Trial(config, "", Status.OK) for config in configs]


def collected(stream):
    return [trial.config for trial in stream.collect()]


def test_half_of_what_is_under_way_compiles_while_the_other_runs():
    evaluate = Compilers()
    stream = in_halves(evaluate)
    stream.submit(CONFIGS[:4])
    assert collected(stream) == CONFIGS[:4]  # a model needs them all
    stream.submit(CONFIGS[4:8])
    assert collected(stream) == CONFIGS[4:6] and evaluate.compiled == CONFIGS[:8]
    stream.submit(CONFIGS[8:10])
    assert collected(stream) == CONFIGS[6:8] and evaluate.compiled == CONFIGS[:10]
    assert collected(stream) == CONFIGS[8:9] and collected(stream) == CONFIGS[9:10]
    assert evaluate.ran == CONFIGS[:10]


def test_what_may_not_begin_early_runs_a_batch_at_once():
    def plain(configs):
        return [Trial(config, "", Status.OK) for config in configs]

    for stream in map(in_halves, (plain, Compilers(may_begin_early=False))):
        for batch in (CONFIGS[:4], CONFIGS[4:8]):
            stream.submit(batch)
            assert collected(stream) == batch
