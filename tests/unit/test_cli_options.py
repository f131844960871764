"""The options that several commands share reach the run as they were typed."""

import signal
from contextlib import suppress
from pathlib import Path

import pytest

from autotune.cli import devices, main, options, record, search
from autotune.cli.parsing import parse, parser, present_words
from autotune.core.trials import Budget, Objective
from autotune.errors import SetupError
from autotune.searchers import engine_names
from autotune.tuning.options import Options

RUNNING = ("search", "run")


@pytest.mark.parametrize("verb", RUNNING)
def test_without_options_a_run_has_the_defaults(verb):
    assert options.run_options(parser().parse_args([verb, "reduce"])) == Options()


@pytest.mark.parametrize("verb", RUNNING)
def test_every_option_of_a_run_reaches_it(verb):
    typed = "--timeout 2.5 --compile-timeout 9 --compilers 3 --journal j --fresh --no-binary-cache --cache c"
    parsed = parser().parse_args([verb, "reduce", *typed.split()])
    assert options.run_options(parsed, budget=Budget(trials=7)) == Options(
        budget=Budget(trials=7),
        timeout_s=2.5,
        compile_timeout_s=9.0,
        compilers=3,
        journal=Path("j"),
        fresh=True,
        binary_cache=False,
        cache=Path("c"),
    )


def test_the_help_of_search_names_every_engine_and_objective(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["search", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    engines = shown[shown.index("--engine ENGINE surrogate") : shown.index("--strategy NAME a")]
    objectives = shown[shown.index("what to minimize") : shown.index("--budget N number")]
    assert [name for name in engine_names() if name not in engines] == []
    named = [one.value for one in Objective if one is not Objective.OWN]
    assert [name for name in named if name not in objectives] == []


@pytest.mark.parametrize("verb", ["best", "compare", "run", "export"])
def test_the_help_of_what_reads_results_names_every_cache_that_is_read(verb, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args([verb, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "comes with autotune" in shown[shown.rindex("--cache DIR") :]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["serach"], "unknown command 'serach'; did you mean search?"),
        (["search", "a.yaml", "--buget", "5"], "unknown option --buget; did you mean --budget?"),
        (["search", "a.yaml", "--resume"], "unknown option --resume (see"),  # not: --fresh, which deletes
        (["search", "a.yaml", "--buget=5"], "unknown option --buget; did you mean --budget?"),
        (["search", "duble"], "duble: no such file; expected a space file; did you mean double?"),
        (["space", "a.yaml", "b.yaml"], "unknown argument b.yaml (see `autotune space --help`)"),
        (["best", "reduce", "n=5"], "unknown argument n=5; write --size n=5 (see `autotune best --help`)"),
        (["run", "a.yaml", "BX=8"], "BX=8; write --size BX=8, or --config BX=8 if it is a parameter (see"),
        (
            ["report", "--figure", "heatmap", "a.jsonl", "-o", "a.svg"],
            "argument --figure: unknown value 'heatmap'; did you mean heat-map? (see ",
        ),
        (["export", "a", "--format", "T44", "-o", "b"], "unknown value 'T44'; did you mean t4? (see "),
        (["run", "double.yaml", "--profile", "x"], "unknown value 'x'; expected one of: ncu, nsys (see "),
        (["report", "a", "--x", "A", "--size", "n=5"], "only --figure takes these: leave out --size, --x\n"),
        (["report", ".", "--live", "-o", "a.html"], "--live serves pages: leave out --output\n"),
        (["space", "double", "--seed", "0"], "only --compile takes a sample: leave out --seed\n"),
        (["space", "double", "--compile", "--report"], "--compile prints a table: leave out --report\n"),
        (["best", "reduce", "--size", "rows=1k"], "such as --size rows=1000\n"),
        (["best", "reduce", "--size", "1_000"], "such as --size n=1000\n"),
        (
            ["search", "runs/a.jsonl"],
            "runs/a.jsonl: cannot be read: No such file or directory",
        ),
        (
            ["search", "fast.cu"],
            "fast.cu: this is a kernel, not a space; write one with: autotune new fast.cu",
        ),
        (["space", "cache/double.json"], "this is a file of results, not a space; "),
        (["search", "report.html"], "report.html: this is a page, not a space; did you mean double.yaml?"),
    ],
)
def test_a_slip_in_a_command_line_is_named_with_its_mend(folder, words, message):
    done = folder.run(*words)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1


def test_without_words_the_commands_are_shown(folder):
    done = folder.run()
    assert done.returncode == 0 and "\ntune:\n" in done.stdout and "  search " in done.stdout


@pytest.mark.parametrize(
    ("typed", "following"),
    [
        ("autotune sea", {"search"}),
        ("autotune search --bud", {"--budget"}),
        ("autotune best -", {"-d", "--device"}),
        ("autotune search --engine exh", {"exhaustive"}),
        ("autotune search --strategy tp", {"tpe"}),
        ("autotune search -d opencl", {"opencl:0"}),
        ("autotune best red", {"reduce"}),
        ("autotune new dou", {"double.py"}),
    ],
)
def test_a_shell_is_told_what_can_follow(folder, typed, following):
    answer = folder.path / "answer"
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": typed,
        "COMP_POINT": str(len(typed)),
    }
    folder.run(**environment)
    assert following <= {word.strip() for word in answer.read_text().splitlines()}


@pytest.mark.parametrize(
    "error", [ImportError("could not import module 'datetime'"), SetupError("triton is broken")], ids=type
)
def test_an_interrupt_that_becomes_another_error_is_one_line(monkeypatch, capsys, error):
    def swallow(_):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise error

    monkeypatch.setattr(devices, "run", swallow)
    # as in a process of its own: tests before may have left another handler
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["devices"]) == 130
    finally:
        signal.signal(signal.SIGINT, handler)
    assert capsys.readouterr().err == "autotune: interrupted\n"


@pytest.mark.parametrize(("more", "resumes"), [((), ""), (("--fresh",), " without --fresh")])
def test_an_interrupted_search_says_which_command_resumes(monkeypatch, capsys, more, resumes):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "run", interrupted)
    assert main(["search", "reduce", *more]) == 130
    assert capsys.readouterr().err == f"autotune: interrupted; the same command{resumes} resumes\n"


def test_the_options_of_a_recorded_program_are_its_own(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(record, "run", interrupted)
    assert main(["record", "--", "python", "net.py", "--compile"]) == 130
    assert capsys.readouterr().err == "autotune: interrupted\n"


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("adopt a.yaml", "search --engine adopt a.yaml"),
        ("ladder a.yaml", "run --landmarks a.yaml"),
        ("ceilings --only copy", "devices --measure --only copy"),
        ("feasible a.yaml", "space --compile a.yaml"),
        ("explore .", "report --live ."),
        ("plot progress a.jsonl", "report --figure progress a.jsonl"),
    ],
)
def test_an_old_name_of_a_command_still_works_and_says_the_new_one(old, words):
    with pytest.warns(UserWarning, match=f"`autotune {old.split()[0]}` is now `autotune "):
        now = present_words(old.split())
    assert [*now] == words.split()
    parse(now)


@pytest.mark.parametrize("words", ["ladder nowhere.yaml", "plot progress nowhere.jsonl"])
def test_a_command_by_its_old_name_runs(words, capsys):
    assert main(words.split()) == 2
    warning, error = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: `autotune ") and "nowhere" in error
