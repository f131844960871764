"""The short form: a few hundred damaged files of each kind, always the same ones."""

import pytest

from tests.fuzz.targets import TARGETS, findings


@pytest.mark.parametrize("name", TARGETS)
def test_no_damaged_file_ends_in_a_traceback_a_file_outside_or_a_long_wait(name):
    found, _ = findings(name, 250)
    assert not found, "\n".join(found[:5])
