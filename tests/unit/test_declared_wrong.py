"""A landmark that is declared wrong is a lesson: it is shown and refused, never searched for or served."""

import json

import pytest

from autotune.space import bind, load_space, problem_of
from tests.kernel_space import CPU, GPU, bound, spec_of
from tests.space_example import YAML, write_space
from tests.unit.test_search_page import data_of

WRONG_FIVE = "(2 + (A == 5)) * x"  # A = 5 would be the fastest


@pytest.fixture
def mistaken(folder):
    """A folder whose fastest configurations are wrong, one of them declared."""
    source = (folder.path / "double.py").read_text()
    folder.write(source.replace("2 * x", WRONG_FIVE))
    folder.edit("second: {A: 2}", "second: {A: 2}\n  mistake: {A: 5, note: too much, expect: wrong_result}")
    return folder


def run(folder, command, *words):
    return folder.run(command, "double.yaml", "--device", "fake", *words)


def test_it_is_not_in_the_space_but_keeps_to_its_constraints():
    spec = spec_of("reduce")
    (mistake,) = spec.declared_wrong
    for device in (GPU, CPU):
        space = bound(spec, device)
        assert mistake not in space and space.why_invalid(mistake) == ()
        assert not any(config["ACCESS"] == "overlapping" for config in space)


def test_a_space_of_nothing_else_is_told(tmp_path):
    text = YAML.replace("second: {ALGORITHM: shuffle}", "second: {BLOCK_SIZE: 32, expect: wrong_result}")
    text = text.replace("PER_BLOCK <= 64 and", 'PER_BLOCK <= 32 and ALGORITHM == "tree" and not UNROLL and')
    spec = load_space(write_space(tmp_path, text))
    with pytest.raises(Exception, match="every valid configuration on Example GPU is declared wrong"):
        bind(spec, GPU, problem_of(spec, GPU))


def test_the_ladder_shows_it_as_a_lesson_without_a_time(mistaken):
    done = run(mistaken, "run", "--landmarks")
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("mistake"))
    assert "too much; wrong, as declared: y[" in line
    rows = json.loads(run(mistaken, "run", "--landmarks", "--json").stdout)
    assert [(row["status"], row["expected"]) for row in rows[-2:]] == [
        ("ok", "ok"),
        ("wrong_result", "wrong_result"),
    ]


def test_the_ladder_says_if_verification_does_not_refuse_it(mistaken):
    mistaken.write((mistaken.path / "double.py").read_text().replace(WRONG_FIVE, "2 * x"))
    assert (
        "declared as wrong_result, which verification did not find; too much"
        in run(mistaken, "run", "--landmarks").stdout
    )


def test_no_search_tries_it_or_keeps_it(mistaken):
    result = mistaken.search("--engine", "exhaustive")
    assert result["config"] != {"A": 5, "B": 0}
    (journal,) = (mistaken.path / "runs").glob("*.jsonl")
    tried = [row["config"] for row in json.loads(mistaken.run("show", journal, "--json").stdout)]
    assert {"A": 5, "B": 1} in tried
    assert {"A": 5, "B": 0} not in tried


def test_check_accepts_it_only_if_it_is_wrong(mistaken):
    done = run(mistaken, "check", "--config", "A=5")
    assert done.returncode == 0 and "(the space declares it as wrong_result)" in done.stdout
    mistaken.write((mistaken.path / "double.py").read_text().replace(WRONG_FIVE, "2 * x"))
    assert run(mistaken, "check", "--config", "A=5").returncode == 1


def test_the_report_has_it_with_what_is_expected(mistaken):
    run(mistaken, "run", "--landmarks")
    (journal,) = (mistaken.path / "runs").glob("*ladder.jsonl")
    done = mistaken.run("report", journal, "--space", "double.yaml", "--output", "page.html")
    assert done.returncode == 0, done.stderr
    text = (mistaken.path / "page.html").read_text()
    landmarks = data_of(text)["searches"][0]["landmarks"]
    assert [(one["name"], one["expected"]) for one in landmarks][-2:] == [
        ("second", "ok"),
        ("mistake", "wrong_result"),
    ]
