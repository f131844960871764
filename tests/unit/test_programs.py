"""Programs are shared as long as they are used, and some beyond."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from autotune.runtime.call_maker import Programs


class Program:
    """Something to refer to weakly."""


def test_a_program_is_made_once_while_it_is_used_or_among_the_latest():
    programs, made = Programs(max_kept=2), []

    def make():
        program = Program()
        made.append(weakref.ref(program))
        return program

    used = programs.get("used", make)
    for key in ("a", "b", "a", "c", "a", "used", "a"):
        programs.get(key, make)
    gc.collect()
    assert programs.get("used", make) is used and len(made) == 4
    assert [one() is not None for one in made] == [True, True, False, False]  # used, a, b, c


def test_what_fails_is_tried_again():
    programs = Programs()

    def fail():
        raise ValueError("it does not compile")

    for _ in range(2):
        with pytest.raises(ValueError, match="does not compile"):
            programs.get("key", fail)
    assert isinstance(programs.get("key", Program), Program)


def test_threads_that_make_one_at_the_same_time_get_the_same():
    programs, together = Programs(), Barrier(4)

    def make():
        together.wait()
        return Program()

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: programs.get("key", make), range(4)))
    assert len(found) == 1
