"""The help of every command fits a terminal of 80 columns."""

import pytest

from autotune.cli.parsing import COMMANDS, GROUPS, parser
from tests.conftest import ROOT


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_no_line_of_help_is_wider_than_a_terminal(capsys, name):
    with pytest.raises(SystemExit):
        parser([name] if name else ()).parse_args([name, "--help"] if name else ["--help"])
    wide = [line for line in capsys.readouterr().out.splitlines() if len(line) > 80]
    assert wide == []


def test_every_command_is_in_one_group(capsys):
    listed = [name for commands in GROUPS.values() for name in commands]
    assert sorted(set(listed)) == sorted(COMMANDS)
    help_text = parser(()).format_help()
    assert all(f"\n{title}:\n" in help_text for title in GROUPS)
    assert all(help_text.count(f"\n  {name} ") == 1 for name in listed)


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_an_example_follows_the_sentence_that_says_what_a_command_does(capsys, name):
    with pytest.raises(SystemExit):
        parser([name] if name else ()).parse_args([name, "--help"] if name else ["--help"])
    usage, sentence, example, *others = capsys.readouterr().out.split("\n\n")
    assert usage.startswith("usage: ") and sentence.endswith(".") and sentence.count(". ") == 0
    assert example.startswith(f"Example: autotune {name or 'search'}") and others
    assert not any("Example: " in one for one in others)


def test_the_decision_on_the_commands_lists_them_all():
    text = next((ROOT / "docs/decisions").glob("0028*")).read_text()
    for title, commands in GROUPS.items():
        assert f"| {title} | {', '.join(f'`{name}`' for name in commands)} |" in text
