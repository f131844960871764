"""The recorder finds what changed, and sees no change where there is none."""

import json

from tests import recorder


def test_two_recordings_of_one_state_are_equal():
    sections = (recorder.stored, recorder.journals)
    before = json.loads(json.dumps(recorder.record(sections)))
    assert before["journals"].keys() == {"double.jsonl", "double.pareto.jsonl", "sums.jsonl"}
    assert list(recorder.differences(before, recorder.record(sections))) == []


def test_a_search_that_was_killed_and_resumed_leaves_what_one_leaves_that_was_not():
    (recorded,) = recorder.record((recorder.resumed,)).values()
    assert recorded["differences"] == []
    assert len(recorded["j.jsonl"]) > recorder.KILLED_AFTER and "double" in str(recorded)


def test_a_difference_is_told_with_its_place(monkeypatch):
    before = {"a": [1, {"b": 2, "old": 3, "text": "one word"}], "gone": 1}
    now = {"a": [1, {"b": 4, "new": 3, "text": "two words"}], "come": 1}
    monkeypatch.setattr(recorder, "RENAMED_KEYS", {"old": "new"})
    found = ["/a/1/b: was '2', is '4'", "/gone: is gone", "/come: is new"]
    assert list(recorder.differences(before, now, prose=False)) == found
    assert "/a/1/text: was 'one word', is 'two words'" in list(recorder.differences(before, now))


def test_everything_that_is_recorded_is_where_the_table_says():
    for name in recorder.PLACES:
        assert recorder.place(name) is not None
