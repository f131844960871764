"""The options that several commands share reach the run as they were typed."""

from pathlib import Path

import pytest

from autotune.cli import options, parser
from autotune.rig import Options
from autotune.trials import Budget

RUNNING = ("search", "adopt", "ladder")


@pytest.mark.parametrize("verb", RUNNING)
def test_without_options_a_run_has_the_defaults(verb):
    assert options.run_options(parser().parse_args([verb, "reduce"])) == Options()


@pytest.mark.parametrize("verb", RUNNING)
def test_every_option_of_a_run_reaches_it(verb):
    typed = "--timeout 2.5 --compile-timeout 9 --workers 3 --journal j --fresh --no-binary-cache --cache c"
    parsed = parser().parse_args([verb, "reduce", *typed.split()])
    assert options.run_options(parsed, budget=Budget(trials=7)) == Options(
        budget=Budget(trials=7),
        timeout_s=2.5,
        compile_timeout_s=9.0,
        workers=3,
        journal=Path("j"),
        fresh=True,
        binary_cache=False,
        cache=Path("c"),
    )
