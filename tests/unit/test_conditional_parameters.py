"""Parameters that matter only under a condition: one value where they do not."""

import json
from itertools import product

import pytest

from autotune.errors import SpaceError
from autotune.space import load_space

CONDITIONAL = """\
  A: [1, 2, 3, 4, 5, 6]
  B: {values: [0, 1, 2], when: A >= 4}
"""


@pytest.fixture
def conditional(folder):
    folder.edit("  A: [1, 2, 3, 4, 5, 6]\n  B: [0, 1, 2]\n", CONDITIONAL)
    return folder


def test_they_count_once_where_they_do_not_matter(conditional):
    found = json.loads(conditional.run("space", "double.yaml", "-d", "fake", "--json").stdout)
    pairs = [(a, b) for a, b in product(range(1, 7), range(3)) if a + b <= 7 and (b == 0 or a >= 4)]
    assert found["valid"] == len(pairs) == 11
    assert found["conditions"] == {"B": "A >= 4"}
    result = conditional.search("--engine", "exhaustive", "--journal", "j.jsonl")
    assert result["trials"] == len(pairs)
    rows = json.loads(conditional.run("show", "j.jsonl", "--json").stdout)
    assert {(row["config"]["A"], row["config"]["B"]) for row in rows} == set(pairs)


def test_the_space_command_says_when_and_why(conditional):
    shown = conditional.run("space", "double.yaml", "-d", "fake").stdout
    assert "0, 1, 2  when A >= 4, else 0" in shown
    why = conditional.run("space", "double.yaml", "-d", "fake", "--config", "A=1,B=2")
    assert "B == 0 or (A >= 4)" in why.stdout + why.stderr


def test_default_and_landmarks_may_leave_them_out(conditional):
    conditional.edit("default: {A: 1, B: 0}", "default: {A: 1}")
    spec = load_space(conditional.space)
    assert dict(spec.default) == {"A": 1, "B": 0} == dict(spec.landmarks[0].config)


def test_a_name_that_is_the_first_value_is_quoted_in_the_constraint(folder):
    folder.edit("B: [0, 1, 2]", "B: {values: [x, y], when: A >= 4}")
    folder.edit("A + B <= 7", "A <= 7")
    folder.edit("default: {A: 1, B: 0}", "default: {A: 1}")
    assert load_space(folder.space).constraints[-1].text == 'B == "x" or (A >= 4)'


def test_the_best_that_is_served_satisfies_the_condition(conditional):
    conditional.search("--engine", "exhaustive")
    (record,) = (conditional.path / "cache/fake-gpu").glob("double.json")
    assert "B == 0 or (A >= 4)" in record.read_text()


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("{values: [0, 1, 2], when: B > 0}", "parameters.B.when: B cannot depend on itself"),
        ("{values: [0, 1, 2], when: C > 0}", "parameters.B.when: unknown name 'C' in 'C > 0'"),
        ("{values: [0, 1, 2], wenn: A > 0}", "parameters.B.wenn: unknown key; did you mean when?"),
        ("{when: A > 0}", "parameters.B: missing key: values"),
    ],
)
def test_a_wrong_condition_is_named(folder, condition, message):
    folder.edit("  B: [0, 1, 2]", f"  B: {condition}")
    with pytest.raises(SpaceError) as caught:
        load_space(folder.space)
    assert message in str(caught.value)
