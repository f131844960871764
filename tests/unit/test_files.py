"""Locks of files that several processes use."""

import fcntl

from autotune.processes.files import lock


def test_who_does_not_wait_for_a_lock_asks_for_it_once(tmp_path, monkeypatch):
    """Each search looks at the scratch folders of all others that run."""
    asked, flock = [], fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lambda *arguments: (asked.append(arguments), flock(*arguments))[1])
    with (tmp_path / "held").open("w") as one, (tmp_path / "held").open("w") as other:
        assert lock(one.fileno()) and not lock(other.fileno(), wait=False)
    assert len(asked) == 2
