"""Streams of trials for one device."""

from autotune.core.records import Config
from autotune.core.trials import Status, Trial
from autotune.searchers.streams import in_parts

CONFIGS = [Config({"X": number}) for number in range(12)]


class Compilers:
    """An `evaluate` that notes what it is told to compile, and what it runs."""

    def __init__(self, may_begin_early=True):
        self.may_begin_early = may_begin_early
        self.compiled, self.ran, self.early = [], [], 0

    def begin_early(self, configs):
        self.compiled += configs

    def run_early(self):
        self.early += 1

    def __call__(self, configs):
        assert self.early == (self.may_begin_early and bool(self.ran))  # since the last call
        self.early = 0
        self.ran += configs
        return [Trial(config, "", Status.OK) for config in configs]


def collected(stream):
    return [trial.config for trial in stream.collect()]


def test_a_third_of_what_is_under_way_runs_while_the_rest_compiles():
    evaluate = Compilers()
    stream = in_parts(evaluate)
    stream.submit(CONFIGS[:6])
    assert collected(stream) == CONFIGS[:2] and evaluate.compiled == CONFIGS[:6]
    stream.submit(CONFIGS[6:8])
    assert collected(stream) == CONFIGS[2:4] and evaluate.compiled == CONFIGS[:8]
    assert [collected(stream) for _ in range(3)] == [CONFIGS[4:6], CONFIGS[6:7], CONFIGS[7:8]]
    assert evaluate.ran == CONFIGS[:8]


def test_what_may_not_begin_early_runs_a_batch_at_once():
    def plain(configs):
        return [Trial(config, "", Status.OK) for config in configs]

    for stream in map(in_parts, (plain, Compilers(may_begin_early=False))):
        for batch in (CONFIGS[:4], CONFIGS[4:8]):
            stream.submit(batch)
            assert collected(stream) == batch
