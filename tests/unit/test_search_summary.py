"""The last lines of a search: no two of them contradict each other, whatever was found."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.cli.output import emit
from autotune.cli.search_summary import result_json, result_line, result_text
from autotune.compilers.source_text import read_source
from autotune.core.outcomes import NO_TIME, PASSED, Limit, Unchecked
from autotune.core.records import Config
from autotune.core.trials import Failure, Measurement, Objective, Rule, Status, Trial
from autotune.devices import Address
from autotune.processes import machine_load
from autotune.searchers.base import StoppingEstimate
from autotune.space import bind, load_space, problem_of
from autotune.tuning.groups import Group
from autotune.tuning.result import SearchResult
from autotune.tuning.task import TuningTask
from autotune.tuning.timing_warnings import shifted
from tests.conftest import Folder
from tests.space_example import FAKE

DEFAULT, BEST, OTHER, THIRD = (Config({"A": a, "B": 0}) for a in (1, 5, 4, 6))


def measured(time_ms, energy_j=None, **more):
    return Measurement((time_ms,), Rule.LAST_ROUND, energy_j=energy_j, **more)


def trial(config, time_ms, **more):
    if time_ms is None:
        return Trial(config, str(config), Failure(Status.CRASHED, "died"), **more)
    return Trial(config, str(config), measurement=measured(time_ms), **more)


def rejected(config, time_ms, detail):
    failure = Failure(Status.WRONG_RESULT, detail)
    return replace(trial(config, time_ms), failure=failure, failed_last_round=True)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The best takes 1 ms and the default 3 ms; two others were tried."""
    space = Folder(tmp_path_factory.mktemp("space")).space
    spec = load_space(space)
    task = TuningTask(
        Address("fake", 0), FAKE, spec, read_source(spec.source), bind(spec, FAKE, problem_of(spec, FAKE))
    )
    return SearchResult(
        task=task,
        engine="random",
        winner=trial(BEST, 1.0),
        final=measured(1.0),
        default=measured(3.0),
        ties=(),
        groups=(),
        trials=(trial(DEFAULT, 3.0), trial(BEST, 1.0), trial(OTHER, 2.0), trial(THIRD, 4.0)),
        resumed=0,
        beside_budget=0,
        time_was_over=False,
        timed_again=frozenset((DEFAULT, BEST, OTHER)),
        lacked_time=False,
        journal=Path("runs/j.jsonl"),
        cache_file=Path("cache/c.json"),
        was_served=False,
        objective=Objective.TIME,
        objective_name="",
        metrics=(),
        priors=(),
        stopping_estimate=StoppingEstimate(100, 8858, 0.16, 0.01),
        uncompared=(),
        front=(),
        search_seconds=1.0,
        cores_of_others=0.0,
        seconds=2.0,
        data_sha256="",
        checks={"output y": PASSED},
        unchecked_ties=(),
    )


def told(plain, **changes):
    """The result with other fields; no trial has metrics."""
    changed = replace(plain, **changes)
    return replace(changed, metrics=({},) * len(changed.trials))


TO_DEFAULT = {"winner": trial(DEFAULT, 3.0), "final": measured(3.0)}
ENERGY = {"objective": Objective.ENERGY, "final": measured(3.6, 1.0), "default": measured(3.0, 2.0)}
UNSTEADY = "the machine was unsteady: 101% noise between two timings of the same binary; "
FAILED = tuple(trial(config, None) for config in (BEST, OTHER, THIRD))
MANY = tuple(trial(Config({"A": 1 + n % 6, "B": n // 6}), 1 + n / 100) for n in range(24))
SAME_A = tuple(trial(Config({"A": 5 if n < 10 else 1, "B": n}), 1.0 + 0.01 * n) for n in range(24))

LINES = [
    ({}, {"default": "3 ms: the best is 3 times as fast", "best": "1 ms (1 to 1), 8 MB/s"}),
    (
        {},
        {"kept": "cache/c.json (trials: runs/j.jsonl)", "tried": "4 of 17 valid configurations with random"},
    ),
    ({"beside_budget": 1}, {"tried": "4 ok; the best in the cache was tried beyond the budget\n"}),
    ({"default": measured(1234.0)}, {"default": "the best is 1,234 times as fast"}),
    (
        {"default": measured(1.39)},
        {"default": "1.39 times as fast; the default beats 50% of the other timed ones"},
    ),
    # the interval of the ratios in each round, where it says more than the gain
    (
        {
            "final": Measurement((1.0, 2.0, 1.0), Rule.LAST_ROUND),
            "default": Measurement((3.0, 4.0, 2.5), Rule.LAST_ROUND),
        },
        {"default": "3 ms: the best is 3 times as fast (2 to 3)\n"},
    ),
    # a gain too small to print, and one that cannot be told from none
    ({"default": measured(1.002)}, {"default": "the best is less than 0.5% faster"}),
    ({"default": measured(1.0)}, {"default": "1 ms: the best cannot be told from it"}),
    (
        {"ties": (DEFAULT,), "default": measured(1.4), "final": measured(1.0, noise=0.05)},
        {
            "default": "1.4 ms: the best cannot be told from it",
            "ties": "1 more cannot be told from the best; it differs in A",
            "noise": "5.00% between the medians of two timings of the same binary\n",
            "warning": None,
        },
    ),
    # rounds that differ more than the medians do
    (
        {"final": Measurement((1.0, 1.1, 1.3), Rule.LAST_ROUND, noise=0.05)},
        {
            "best": "1.1 ms (1 to 1.3)",
            "noise": "two timings of the same binary; single rounds differ by up to 27%\n",
        },
    ),
    (
        {"ties": (DEFAULT, OTHER), "default": measured(2.0), "final": measured(1.0, noise=1.01)},
        {
            "default": "2 ms: the best cannot be told from it",
            "ties": "2 more cannot be told from the best, the default among them; they differ in A",
            "warning": f"{UNSTEADY}run the search again on a quiet machine",
            "noise": None,
        },
    ),
    # the default is the best
    (TO_DEFAULT, {"default": "3 ms: no other configuration tried is faster"}),
    (TO_DEFAULT | {"trials": (trial(DEFAULT, 3.0),)}, {"default": "3 ms: no other configuration was tried"}),
    (
        TO_DEFAULT | {"trials": (trial(DEFAULT, 3.0), *FAILED)},
        {
            "default": "3 ms: all other configurations tried failed",
            "failed": "3 crashed: died; autotune show runs/j.jsonl --status crashed",
        },
    ),
    # a value to blame is named where all that failed have it, and none that has a time does
    (
        {
            "trials": (
                trial(DEFAULT, 3.0),
                trial(BEST, 1.0),
                *(trial(Config({"A": a, "B": 1}), None) for a in (1, 4)),
            )
        },
        {"failed": "2 crashed, all with B=1, which no timed trial has: died; autotune show runs/"},
    ),
    (
        {"trials": (trial(DEFAULT, 3.0), trial(BEST, 1.0), trial(Config({"A": 1, "B": 1}), None))},
        {"failed": "1 crashed: died; autotune show runs/j.jsonl"},
    ),
    # failures are not beaten
    (
        {"default": measured(1.5), "trials": (trial(DEFAULT, 1.5), trial(BEST, 1.0), *FAILED[1:])},
        {"default": "1.5 ms: the best is 1.50 times as fast\n"},
    ),
    # the last round saw a faster device than the search: the default beats nobody for that
    (
        {"default": measured(1.5), "trials": (trial(DEFAULT, 4.5), trial(BEST, 3.0), trial(OTHER, 4.0))},
        {
            "default": "1.5 ms: the best is 1.50 times as fast\n",
            "warning": "configurations were 3 times as fast in the last round as in the search",
        },
    ),
    # nothing was compared: no praise without a condition
    (
        {"checks": {}},
        {
            "default": "the best is 3 times as fast, if its result is right\n",
            "warning": "no output was compared",
        },
    ),
    (
        ENERGY | {"checks": {}},
        {"default": "50% of the default's energy and 120% of its time, if its result is"},
    ),
    # energy
    (
        ENERGY,
        {"default": "3 ms, 2 J a run: the best takes 50% of the default's energy and 120% of its time\n"},
    ),
    (
        ENERGY | {"objective": Objective.PARETO},
        {"default": "60% of the default's energy times delay and 120% of its"},
    ),
    (
        ENERGY,
        {"explored": "1.13% of 8,858 valid configurations; 16% chance that an untried one is at least 1% b"},
    ),
    (
        ENERGY | {"winner": trial(DEFAULT, 3.0), "final": measured(3.0, 2.0)},
        {"default": "no other configuration tried takes less energy"},
    ),
    (
        {"front": ((BEST, 1.0, 2.0),)},
        {"front": "1 that no other beats in both time and energy, 1 ms, 2 J: autotune"},
    ),
    (
        {"front": ((BEST, 1.0, 2.0), (OTHER, 2.0, 1.0))},
        {"front": "2 that no other beats in both time and energy, from 1 ms, 2 J to 2 ms, 1 J: autotune"},
    ),
    (TO_DEFAULT, {"warning": "2 faster times of the search, down to 1 ms, did not recur"}),
    # also if the others were even slower in the search
    (
        TO_DEFAULT | {"trials": (trial(DEFAULT, 4.5), trial(BEST, 1.0)), "winner": trial(DEFAULT, 4.5)},
        {
            "warning": "configurations were 1.5 times as fast in the last round as in the search: load or "
            "clocks changed; 1 faster time of the search, down to 1 ms, did not recur in the last round"
        },
    ),
    # what was faster in the search may have had no turn in the last round
    (
        TO_DEFAULT | {"timed_again": {DEFAULT, OTHER}},
        {"warning": "1 faster time of the search, down to 1 ms, had no turn in the last round\n"},
    ),
    (
        TO_DEFAULT | {"timed_again": {DEFAULT, OTHER}},
        {"warning": "1 faster time of the search, down to 2 ms, did not recur in the last round; 1 fast"},
    ),
    (
        TO_DEFAULT | {"timed_again": {DEFAULT}, "lacked_time": True},
        {"warning": "had no turn in the last round; run the search again with a longer --time\n"},
    ),
    (
        {"final": measured(1.0, noise=1.01), "lacked_time": True},
        {"warning": f"{UNSTEADY}run the search again with a longer --time"},
    ),
    (
        {"cores_of_others": 1e3, "lacked_time": True},
        {"warning": "cores during the search; run the search again on a quiet machine\n"},
    ),
    # what was faster and failed a check, which may be the one at fault
    (
        {"trials": (*(rejected(one, 0.5, "with data largest: y") for one in (OTHER, THIRD)), trial(BEST, 1))},
        {
            "faster": "2 in the search, which failed a check: 2 with data largest; look at these "
            "first: autotune show runs/j.jsonl --status wrong_result\n",
            "failed": "in the last round: wrong_result: A=4 B=0: with data largest: y\n",
        },
    ),
    (
        {"trials": (rejected(OTHER, 0.5, "y is 1"),)},
        {"faster": "1 in the search, which failed a check: 1 wrong_result; "},
    ),
    (
        {"trials": (rejected(OTHER, 2.0, "y is 1"),)},
        {"failed": "in the last round: wrong_result: A=4 B=0: y"},
    ),
    ({"time_was_over": True}, {"tried": "4 ok; time ran out\n"}),
    # what is there from before
    ({"resumed": 3}, {"tried": "3 ok, 1 crashed; 3 of them came from the journal"}),
    ({"resumed": 4}, {"tried": "4 ok; all of them came from the journal\n"}),
    (
        {"was_served": True},
        {"kept": "cache/c.json, which already had this configuration (trials: runs/j.jsonl)"},
    ),
    ({"trials": (trial(DEFAULT, 3.0),)}, {"best": "8 MB/s, found by an earlier search\n"}),
    # the rest of the space
    (
        {},
        {"explored": "1.13% of 8,858 valid configurations; 16% chance that an untried one is"},
    ),
    (
        {"final": measured(1.0, noise=0.58)},
        {"explored": "1.13% of 8,858 valid configurations; too noisy to estimate the rest\n"},
    ),
    (
        {"stopping_estimate": StoppingEstimate(1, 88580, 0.0, 0.0)},
        {"explored": "<0.01% of 88,580 valid configurations; <1% chance"},
    ),
    (
        {"stopping_estimate": StoppingEstimate(88579, 88580, 1.0, 0.5)},
        {"explored": ">99.99% of 88,580 valid configurations; >99% c"},
    ),
    (
        {"stopping_estimate": StoppingEstimate(17, 17, 0.0, 0.0)},
        {"explored": "all 17 valid configurations\n"},
    ),
    (
        {"stopping_estimate": StoppingEstimate(2, 17, None, None)},
        {"explored": "11.76% of 17 valid configurations; too few have a time to estimate"},
    ),
    # what the fastest share, and the best of an earlier search does not
    (
        {"trials": SAME_A},
        {"learnt": "the 10 fastest all have A=5; the slowest took 1.2 times the best's time"},
    ),
    (
        {"trials": SAME_A, "winner": trial(OTHER, 0.5), "final": measured(0.5)},
        {"learnt": "the 10 fastest share no value that sets them apart; the slowest"},
    ),
    # groups
    (
        {"groups": (Group("low", 2, measured(1.0)), Group("high", 2, measured(1.001)))},
        {"groups": "low 1 ms (2 tried), high 1.001 ms (2 tried): low wins by less than 0.5%\n"},
    ),
    (
        ENERGY | {"groups": (Group("low", 2, measured(3.6, 1.0)), Group("high", 2, measured(1.0, 2.0)))},
        {"groups": "low 3.6 ms, 1 J a run (2 tried), high 1 ms, 2 J a run (2 tried): low wins, 2"},
    ),
    (
        ENERGY | {"groups": (Group("low", 2, measured(3.6, 1.0)), Group("high", 2, measured(1.0)))},
        {"groups": "low 3.6 ms, 1 J a run (2 tried), high 1 ms (2 tried)\n"},
    ),
]


@pytest.mark.parametrize(("changes", "expected"), LINES, ids=[str(n) for n in range(len(LINES))])
def test_every_line_says_what_the_others_allow(plain, changes, expected):
    if changes.get("resumed") == 3:
        changes = changes | {"trials": (*plain.trials[:3], trial(THIRD, None))}
    text = result_text(told(plain, **changes)) + "\n"
    for label, part in expected.items():
        found = re.findall(rf"(?m)^{label} +(.*\n)", text)
        assert (not found) if part is None else any(part in line for line in found), text


def test_a_budget_that_leaves_out_the_cached_best_is_explained(folder):
    folder.search("--budget", "17")
    done = folder.run("search", "double.yaml", "--device", "fake", "--fresh", "--budget", "1")
    assert re.search("tried   2 of .*: 2 ok; the best in the cache", done.stdout)


def test_a_learnt_line_of_energy_is_of_energy(plain):
    ranked = tuple(
        replace(one, objective=Objective.ENERGY, measurement=measured(9.0 - n / 3, 1.0 + n))
        for n, one in enumerate(MANY)
    )
    text = result_text(told(plain, **ENERGY, trials=ranked))
    assert (
        "the 10 best share no value that sets them apart; the worst took 24 times the best's energy" in text
    )


@pytest.mark.parametrize(
    ("best", "default", "told"),
    [
        ((1.0, 1.1), (4.0, 4.0), []),
        ((1.0, 2.0), (4.0, 8.4), ["configurations took 2 times as long in the last round as in the search"]),
        (
            (2.0, 1.0),
            (8.0, 5.0),
            ["configurations were 1.6 times as fast in the last round as in the search"],
        ),
        ((1.0, 2.0), (4.0, 4.1), []),  # the best was the luckiest, the device the same
        ((1.0, 2.0), (4.0, 2.0), []),  # contradictory
        ((1.0, 2.0), (None, 4.0), []),
        ((None, 2.0), (None, 4.0), []),
    ],
)
def test_a_last_round_on_another_device_than_the_search_is_told(best, default, told):
    pairs = [(before, Measurement((after,), Rule.LAST_ROUND)) for before, after in (best, default)]
    assert [line.split(":")[0] for line in shifted(pairs)] == told


def test_a_governor_that_lets_the_clocks_change_is_told_with_the_result(plain, tmp_path, monkeypatch):
    governor = tmp_path / "cpu0/cpufreq/scaling_governor"
    governor.parent.mkdir(parents=True)
    governor.write_text("powersave\n")
    monkeypatch.setattr(machine_load, "_GOVERNORS", tmp_path)
    cpu = replace(plain.task, device=replace(plain.task.device, kind="cpu"))
    said = "warning the CPU's governor is powersave: times may be unsteady"
    assert said in result_text(told(plain, task=cpu)) and said not in result_text(told(plain))


def test_the_first_line_says_what_was_not_checked_and_calls_nothing_verified(plain):
    record = {"many runs": PASSED, "data zeros": NO_TIME, "initcheck": Unchecked("it does not work here")}
    found = told(plain, checks=record)
    first, *lines = result_text(found).splitlines()
    assert first.endswith("int32: not verified in full, without 2 of 3 checks: data zeros, initcheck")
    missed = "without data zeros (no time was left); initcheck (it does not work here)"
    assert f"checks  many runs; {missed}" in lines
    assert any(line.startswith("next    autotune check ") and line.endswith(" --refresh") for line in lines)
    assert result_json(found)["checks"] == f"many runs; {missed}"
    assert result_json(found)["unchecked"] == ["data zeros", "initcheck"]
    assert "verified" not in result_text(told(plain))


def test_a_rehearsal_says_what_it_is_for_in_place_of_checks_to_repeat(plain):
    task = replace(plain.task, address=Address("interpreter", 0))
    first, *lines = result_text(told(plain, task=task, checks={"many runs": NO_TIME})).splitlines()
    assert first.endswith("int32: a rehearsal, whose times mean nothing")
    assert lines[-1].startswith("next    AUTOTUNE_CACHE=") and "TRITON_INTERPRET=1" in lines[-1]


@pytest.mark.parametrize("noise", [0.05, 1.01])
def test_a_rehearsal_says_nothing_about_how_far_its_times_can_be_trusted(plain, noise):
    changes = {"ties": (OTHER,), "default": measured(2.0), "final": measured(1.0, noise=noise)}
    task = replace(plain.task, address=Address("interpreter", 0))
    words = ("ties ", "noise", "quiet machine")
    assert any(word in result_text(told(plain, **changes)) for word in words)
    assert not any(word in result_text(told(plain, task=task, **changes)) for word in words)


def test_what_indices_cannot_hold_has_a_line_of_its_own_and_leaves_a_result_verified(plain):
    """No space asks for such sizes, and nothing can be done about them."""
    note = "an index of x overflows, for example at n=4,294,967,297"
    found = told(plain, checks={"output y": PASSED, "larger sizes": Limit(note)})
    first, *lines = result_text(found).splitlines()
    assert first.endswith("int32") and {"checks  output y", f"limit   {note}"} <= {*lines}
    assert result_json(found)["unchecked"] == []
    late = told(plain, checks={"output y": PASSED, "larger sizes": NO_TIME})
    assert "not verified in full, without 1 of 2 checks: larger sizes" in result_text(late)


def test_ties_that_were_not_checked_are_named(plain):
    text = result_text(told(plain, ties=(THIRD,), unchecked_ties=(OTHER, DEFAULT)))
    told_so = "        2 of them are not in the cache: only the best 6 get all `checks`\n"
    among = "cannot be told from the best, the default among them"
    (lines,) = re.findall(
        rf"^ties    3 more {among}; they differ in A\n{told_so}(.*\n.*)\n", text, re.MULTILINE
    )
    assert lines == "        A=4; the rest as in the best\n        the default"
    assert "        1 of them is not in the cache: " in result_text(told(plain, unchecked_ties=(OTHER,)))


def test_the_line_of_one_search_of_several_gives_no_gain_that_cannot_be_told_from_none(plain):
    assert "best 1 ms, 3 x over the default; " in result_line(plain)
    for field in ("ties", "unchecked_ties"):
        tied = told(plain, default=measured(1.4), **{field: (DEFAULT,)})
        assert "best 1 ms, not distinguishable from the default; " in result_line(tied)


def test_the_best_is_told_by_what_sets_it_apart_from_the_default(plain):
    assert "        A=5; the rest as in the default\n" in result_text(told(plain))
    both = told(plain, winner=trial(Config({"A": 5, "B": 1}), 1.0))
    assert "        A=5 B=1\n" in result_text(both)


def test_a_summary_fits_a_screen_whatever_there_is_to_say(plain, monkeypatch, capsys):
    long = dict.fromkeys(("BLOCK_SIZE", "WORK_PER_THREAD", "VECTOR_WIDTH", "UNROLL", "ACCESS", "FINISH"), 16)
    wide = Config(dict(DEFAULT) | {"A": 5} | long)
    spec = replace(plain.task.spec, default=Config(dict(DEFAULT) | dict.fromkeys(long, 1)))
    result = told(
        plain,
        task=replace(plain.task, spec=spec),
        winner=trial(wide, 1.0, registers=40),
        final=measured(1.0, noise=0.2),
        ties=(Config(dict(wide) | {"A": 4, "UNROLL": 2}), Config(dict(wide) | {"FINISH": 2})),
        unchecked_ties=tuple(Config(dict(wide) | {"A": a}) for a in (2, 3)),
        trials=tuple(trial(Config(dict(wide) | {"UNROLL": n}), 0.5 + n / 100) for n in range(24)),
        lacked_time=True,
        cores_of_others=1.5,
        checks=dict.fromkeys(
            ("output y", "fresh inputs", "other sizes", "many runs", "races on the CPU"), PASSED
        )
        | {"other schedules": NO_TIME, "AddressSanitizer": NO_TIME},
    )
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    emit(result_text(result))
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) <= 24 and max(map(len, shown)) <= 80
