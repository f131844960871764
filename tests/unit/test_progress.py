"""What a search shows while it runs: its stage from the start, in one line, as much as was asked for."""

import re
from types import SimpleNamespace

from autotune.cli.forecast import Forecast
from autotune.cli.progress import SearchProgress, Verbosity
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.tuning.task import Target, read_task
from tests.conftest import KERNEL


def trial(time_ms=None, status=Status.OK):
    measurement = None if time_ms is None else Measurement((time_ms,), Rule.STEADY)
    failure = None if status is Status.OK else Failure(status, "")
    return Trial(Config({"A": 1}), "key", failure, measurement=measurement)


def test_every_stage_of_a_search_is_told_with_its_time(folder, whole_last_round):
    folder.write(KERNEL.replace("(A - 5) ** 2", "10 + A"))  # three that are about as fast
    done = folder.run("search", "double.yaml", "-d", "fake", "--budget", "3", "--verbose")
    assert done.returncode == 0, done.stderr
    stages = [line for line in done.stderr.splitlines() if re.search(r": \d+\.\d s$", line)]
    lines = iter(stages)
    for stage in (  # those that always follow each other
        "reading double.yaml",
        "finding devices",
        "counting valid configurations",
        "verifying and timing",
        "last round: compiling 3 of 3",
        "last round: verifying 9 of 9",
        "last round: timing, round 13 of 13",
        "last round: many runs",
    ):
        assert any(line.startswith(f"{stage}: ") for line in lines), stage
    assert any(
        line.startswith("preparing inputs and reference (reference.py) at 3 sizes: ") for line in stages
    )
    assert any(re.match(r"compiling \d of \d: ", line) for line in stages)  # compilers run next to the rest
    assert (
        sum(line.startswith("last round: other data ") for line in stages) == 1
    )  # one, whatever it prepares
    assert any(line.startswith("3 ") and "ms: A=" in line for line in done.stderr.splitlines())


def test_a_search_says_what_it_continues_and_when_nothing_new_is_tried(folder):
    search = ("search", "double.yaml", "-d", "fake", "--budget")
    told = [folder.run(*search, budget).stderr for budget in ("2", "3")]
    journal = "runs/double.fake-gpu.n1000.int32.jsonl"
    lines = (folder.path / journal).read_text().splitlines(keepends=True)
    without_last_round = [line for line in lines if line.startswith(('{"journal":', '{"trial":'))]
    (folder.path / journal).write_text("".join(without_last_round))
    told.append(folder.run(*search, "3").stderr)
    assert f"trials go to {journal}\n" in told[0] and "continues" not in told[0]
    assert f"continues 2 trials of {journal}\n" in told[1] and "only this round" not in told[1]
    assert f"continues 3 trials of {journal}\n" in told[2]
    assert re.search("last round: .*; all trials were known, and only this round is run\n", told[2])


def test_a_quiet_search_says_nothing_but_its_result(folder):
    done = folder.run("search", "double.yaml", "-d", "fake", "--budget", "3", "--quiet")
    assert done.returncode == 0
    assert all(line.startswith("warning: ") for line in done.stderr.splitlines())  # of a loaded machine
    assert "best" in done.stdout


def test_quiet_and_verbose_exclude_each_other(folder):
    done = folder.run("search", "double.yaml", "-qv")
    assert done.returncode == 2 and "not allowed with argument" in done.stderr


def test_a_line_of_80_columns_holds_what_matters():
    progress = SearchProgress()
    progress._console.width = 80
    progress.stage(Stage("compiling", 12, 14))
    progress._count(100)
    progress._forecast = Forecast(100, progress._began)
    for each in (trial(0.2023), trial(status=Status.WRONG_RESULT), trial(status=Status.COMPILE_ERROR)):
        progress.tried(each)
    line = progress._renderable().plain
    assert line.startswith(" " * 13 + "3/100, compiling 12 of 14, 0:00, 0:04 left, best so far 0.2023 ms")
    assert len(line) == 79 and line.endswith("…")


def test_the_last_round_has_a_bar_of_its_own():
    progress = SearchProgress()
    progress._count(2)
    progress.tried(trial(1.0))
    progress.last_round(8)
    progress.stage(Stage("last round: timing, round", 6, 12))
    assert progress._renderable().plain == ("━━━━━━       last round: timing, round 6 of 12, 0:00, 0:00 left")


def test_the_time_left_is_that_of_the_whole_search(folder):
    task = read_task(Target(folder.space, device="fake"))
    progress = SearchProgress(Verbosity.QUIET)
    progress.started(task, 3, SimpleNamespace(path=folder.path / "j.jsonl", warning=None, trials={}))
    progress.stage(Stage("timing"))
    progress._began -= 60.0
    progress._forecast = Forecast(3, progress._began)
    progress._forecast.tried(0.0, progress._began + 30.0)
    progress.tried(trial(1.0))
    left_s = progress.left_s()  # trials cost nothing here, so the end takes its few seconds
    assert 33 < left_s < 38 and f"timing, 1:00, 0:{left_s:02.0f} left, " in progress._line()


def test_what_follows_the_last_trial_has_a_time_of_its_own(folder):
    progress = SearchProgress(Verbosity.QUIET)
    path = SimpleNamespace(path=folder.path / "j.jsonl", warning=None, trials={})
    progress.started(read_task(Target(folder.space, device="fake")), 1, path)
    progress.tried(trial(1.0))
    progress.over()
    progress.stage(Stage("counting", 1, 4))
    progress._stage_began -= 10.0
    assert "counting 1 of 4, 0:10, 0:30 left" in progress._line()


def test_a_stage_that_knows_its_time_counts_it_down():
    progress = SearchProgress()
    progress.stage(Stage("planting", 1, 4, left_s=20.0))
    progress._stage_began -= 10.0
    progress._stage_told -= 5.0
    assert progress._line() == "planting 1 of 4, 0:10, 0:15 left"
    progress._stage_told -= 20.0
    assert progress._line() == "planting 1 of 4, 0:10"


def test_warnings_are_said_to_the_quiet_too(capsys):
    for verbosity in Verbosity:
        SearchProgress(verbosity).warn("unsteady")
    assert capsys.readouterr().err == 3 * "warning: unsteady\n"


def test_a_stage_is_shown_with_what_is_done_of_it():
    progress = SearchProgress()
    progress.stage(Stage("compiling for sm_90", total=12))
    assert progress._renderable().plain == 13 * " " + "compiling for sm_90 0 of 12, 0:00"
    progress.stage(Stage("compiling for sm_90", done=6, total=12))
    assert progress._renderable().plain.endswith("compiling for sm_90 6 of 12, 0:00, 0:00 left")
