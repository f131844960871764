"""The short form: some damaged and some hostile files of each kind, always the same ones."""

import pytest

from tests.fuzz.targets import TARGETS, findings


@pytest.mark.parametrize("name", TARGETS)
def test_no_file_ends_in_a_traceback_a_file_outside_an_escape_or_a_long_wait(name):
    found, _ = findings(name, TARGETS[name].short_cases)
    assert not found, "\n".join(found[:5])
