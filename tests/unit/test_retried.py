"""Errors that pass by themselves are waited for, and no others."""

import errno

import pytest

import autotune.core.retried as again
from autotune.core.retried import retried


def test_what_always_fails_is_raised(monkeypatch):
    monkeypatch.setattr(again, "sleep", lambda pause_s: pauses_s.append(pause_s))
    pauses_s = []

    def fail():
        raise SystemError("bad argument to internal function")

    with pytest.raises(SystemError, match="bad argument"):
        retried(fail, SystemError)
    assert 0.1 < sum(pauses_s) < 1.0


def test_of_errors_of_the_system_only_the_one_that_passes_is_retried(monkeypatch):
    monkeypatch.setattr(again, "sleep", lambda pause_s: None)
    raised = [OSError(errno.ETXTBSY, "busy"), OSError(errno.ETXTBSY, "busy"), OSError(errno.ENOENT, "none")]

    def fail():
        raise raised.pop(0)

    with pytest.raises(FileNotFoundError):
        retried(fail, OSError, errno.ETXTBSY)
    assert not raised
