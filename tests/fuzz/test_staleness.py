"""The short form: a few edits at the level of keys, and whole searches after some; always the same ones."""

from tests.devices_here import devices_here
from tests.fuzz.staleness import wrong_keys, wrong_searches


def test_no_edit_leaves_a_row_or_a_binary_that_is_found_again(tmp_path):
    assert not list(wrong_keys(60, tmp_path))


def test_no_search_after_an_edit_uses_what_was_found_before_it(tmp_path):
    devices_here("opencl")
    assert not list(wrong_searches(2, tmp_path))
