"""A time in a cache is one that Python reads."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from autotune.core.json_values import is_time


def reads(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="seconds") == text
    except (ValueError, OverflowError):
        return False


@given(st.datetimes().map(lambda time: time.replace(tzinfo=UTC).isoformat(timespec="seconds")))
def test_every_time_that_a_search_writes_is_read(text):
    assert is_time(text)


@given(
    st.from_regex(r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]\+00:00\Z") | st.text()
)
def test_nothing_else_is(text):
    assert is_time(text) == reads(text)
