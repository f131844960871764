"""The table of trials: what is known is a column, what is not known for any trial is none."""

from dataclasses import replace
from pathlib import Path

from autotune.cli.show import Row, trials_table
from autotune.core.records import Config
from autotune.core.trials import Measurement, Rule, Status, Trial

TIMED = Trial(Config({"A": 1}), "a", Status.OK, measurement=Measurement((0.5,), Rule.STEADY))
FAILED = Trial(Config({"A": 2}), "b", Status.COMPILE_ERROR, "line 1\nline 2")


def columns(trials):
    drawn = trials_table([Row(Path("j.jsonl"), trial) for trial in trials])
    return {str(column.header): list(column.cells) for column in drawn.columns}


def test_registers_and_spills_are_shown_where_the_compiler_says_them():
    known = replace(TIMED, registers=40, spill_bytes=0)
    assert columns([known, FAILED]) == {
        "ms": ["0.5", "-"],
        "status": ["ok", "compile_error"],
        "A": ["1", "2"],
        "registers": ["40", "-"],
        "spill": ["0", "-"],
        "detail": ["", "line 1"],
    }
    assert list(columns([TIMED, FAILED])) == ["ms", "status", "A", "detail"]
