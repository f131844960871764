"""The mutants of benchmarks/mutants.yaml, and the part that tries one."""

from contextlib import closing
from pathlib import Path

from autotune.devices import Address
from tests.devices_here import devices_here

LARGEST = "#define COMBINED(a, b) max(a, b)"


def test_the_text_that_a_mutant_replaces_is_in_its_kernel(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    from mutant_verifier import read_mutants

    mutants = read_mutants(Path(__file__).parents[2] / "benchmarks" / "mutants.yaml")
    assert all(mutant.text() for mutant in mutants)
    assert len({mutant.key for mutant in mutants}) == len(mutants)


def test_a_wrong_operator_is_caught_and_a_right_one_is_not(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    from mutant_verifier import Mutant, Verifier

    device = devices_here("opencl")[0]
    opened = Verifier("operators", Address("opencl", 0), device, None, 1, 0, None, ("results",))
    with closing(opened) as verifier:
        found = [
            verifier.caught(Mutant("operators", "operator", old, new, "operators.cu", 1, False, ""))
            for old, new in (
                (LARGEST, "#define COMBINED(a, b) ((a) < (b) ? (b) : (a))"),
                (LARGEST, "#define COMBINED(a, b) ((int)(a) < (int)(b) ? (b) : (a))"),
                ("#define NEUTRAL 0u", "#define NEUTRAL 1u"),
                ("#define NEUTRAL 0xffffffffu", "#define NEUTRAL 0x7fffffffu"),
            )
        ]
    assert found[0] == ("", "2 configurations tried")
    assert [way for way, _ in found[1:]] == ["results"] * 3, found
