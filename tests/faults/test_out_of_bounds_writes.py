"""Writes that jump over the guard zones: whatever they hit, only who made them pays."""

from autotune.evaluation.journal import read_trials

KERNEL = """\
import gc, os, signal

def spoil(name, n, image):
    "A stray pointer does not ask whose memory it hits."
    for slot in gc.get_objects():
        if type(slot).__name__ == "GuardedBuffer" and slot.array.name == name and slot.count == n:
            getattr(slot, image).whole.fill(7)

def double(grid, block, x, y, n):
    if getattr(os, "spoilt", (A, B)) != (A, B):
        os.kill(os.getpid(), signal.SIGSEGV)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    if B == 0 and n == 1000:
        if A == 2: DAMAGE_2
        if A == 3: DAMAGE_3
        if A == 4: DAMAGE_4
        if A == 6: DAMAGE_6
    return (A - 5) ** 2 + B + 1.0
"""


def search(folder, *damages):
    """Search with a kernel that does such damage where A is 2, 3, 4 and 6 and B is 0; those that failed."""
    kernel = KERNEL
    for a, damage in zip((2, 3, 4, 6), damages, strict=True):
        kernel = kernel.replace(f"DAMAGE_{a}", damage)
    folder.write(kernel)
    result = folder.search("--engine", "exhaustive")
    assert result["config"] == {"A": 5, "B": 0}
    trials = read_trials(folder.path / result["journal"])
    assert len(trials) == 17
    return [trial for trial in trials if trial.measurement is None]


def test_who_fails_by_damage_to_what_it_is_compared_with_wrote_out_of_bounds(folder):
    failed = search(
        folder,
        'spoil("y", 1000, "_expected")',
        'spoil("y", 1000, "_expected"); x.fill(7)',
        'spoil("y", 1000, "_pristine")',
        'spoil("x", 1000, "_pristine")',
    )
    assert [(trial.config["A"], trial.config["B"]) for trial in failed] == [(2, 0), (3, 0), (4, 0), (6, 0)]
    assert {trial.status.value for trial in failed} == {"out_of_bounds"}
    assert all("far from any array" in trial.detail and "n=1000" in trial.detail for trial in failed)


def test_what_one_damages_unnoticed_does_not_fail_the_next(folder):
    failed = search(
        folder,
        'spoil("y", 1, "_expected")',
        'spoil("y", 17, "_pristine")',
        'spoil("x", 1, "_memory")',
        "os.spoilt = (A, B)",
    )
    assert not failed


def test_what_one_finalist_damages_unnoticed_does_not_fail_the_next(folder):
    counted = 'globals().update(runs=runs + 1); runs == 3 and spoil("y", 1000, "_pristine")'
    kernel = KERNEL.replace("if B == 0 and n == 1000:", f"if (A, B, n) == (5, 0, 1000): {counted}")
    head, _, rest = kernel.partition("        if A == 2: DAMAGE_2")
    folder.write("runs = 0\n" + head + rest.partition("DAMAGE_6\n")[2])
    assert folder.search("--engine", "exhaustive")["counts"] == {"ok": 17}


def test_a_finalist_that_dies_between_two_turns_takes_none_of_the_others_with_it(folder):
    folder.write("""\
import os, signal

def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    if (A, B, n) == (5, 0, 1000):
        os.runs = getattr(os, "runs", 0) + 1
        if os.runs > 20:
            os.kill(os.getpid(), signal.SIGSEGV)
    return (A - 5) ** 2 + B + 10.0
""")
    assert folder.search("--engine", "exhaustive")["counts"] == {"ok": 17}
