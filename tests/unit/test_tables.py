"""Tables fit the width of a terminal, and lose nothing that a reader needs."""

from hypothesis import given
from hypothesis import strategies as st

from autotune.cli.tables import Table, table

NARROW = table(
    ("kernel", "device", "ms", "cache"),
    [
        ("reduce", "skylake-avx512-Intel Xeon Processor", "5.197", "cache"),
        ("reduce", "AMD EPYC", "-", "cache"),
    ],
)
WORDS = st.text("abc-", min_size=1, max_size=12)
CELLS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


def test_a_table_that_fits_stays_as_it_is():
    assert NARROW.drawn(80).splitlines() == [
        "kernel  device                                  ms  cache",
        "reduce  skylake-avx512-Intel Xeon Processor  5.197  cache",
        "reduce  AMD EPYC                                 -  cache",
    ]


def test_a_wide_one_loses_the_columns_that_are_the_same_in_all_rows_and_says_them_below():
    assert NARROW.drawn(52).splitlines() == [
        "kernel  device                                  ms",
        "reduce  skylake-avx512-Intel Xeon Processor  5.197",
        "reduce  AMD EPYC                                 -",
        "in all rows: cache cache",
    ]


def test_on_a_terminal_so_do_those_of_several_rows_that_fit_and_unknown_cells_are_not_said(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    rows = [(f"{n}", "ok", "-", "x" * n) for n in (1, 2, 3)]
    assert table(("ms", "status", "J", "note"), rows).drawn(80, is_terminal=True).splitlines() == [
        *("ms  note", " 1  x", " 2  xx", " 3  xxx"),
        "in all rows: status ok",
    ]


def test_numbers_are_aligned_to_the_right_and_lists_of_them_are_not():
    shown = table(("count", "values"), [("10", "1, 2, 4"), ("2", "0, 1")]).drawn(80)
    assert shown.splitlines() == ["count  values", "   10  1, 2, 4", "    2  0, 1"]


def test_then_texts_are_broken_between_words():
    assert NARROW.drawn(40).splitlines() == [
        "kernel  device                        ms",
        "reduce  skylake-avx512-Intel Xeon  5.197",
        "        Processor",
        "reduce  AMD EPYC                       -",
        "in all rows: cache cache",
    ]


def test_a_number_is_not_broken_from_its_unit():
    rows = (("numpy", "0.000942 x", "one thread"), ("tuned", "1 x", "exact"))
    drawn = Table(("what", "of tuned", "settings"), rows).drawn(26)
    assert "0.000942 x" in drawn, drawn


def test_the_narrowest_become_a_block_of_lines_for_each_row():
    assert NARROW.drawn(30).splitlines() == [
        "reduce",
        "  device skylake-avx512-Intel",
        "  Xeon Processor; ms 5.197",
        "reduce",
        "  device AMD EPYC",
        "in all rows: cache cache",
    ]


def test_a_title_is_shown_above_even_without_rows_and_in_bold_on_a_terminal(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert table(("a",), [], title="none yet").drawn(80) == "none yet"
    assert (
        table(("a",), [("1",)], title="T").drawn(80, is_terminal=True)
        == "\x1b[1mT\x1b[0m\n\x1b[1ma\x1b[0m\n1"
    )


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5), st.integers(40, 90))
def test_no_word_is_broken_and_no_line_is_too_wide(rows, width):
    columns = ("first", "second", "third")
    text = Table(columns, tuple(rows)).drawn(width)
    assert all(len(line) <= width for line in text.splitlines())
    shown = text.replace(";", " ").replace(",", " ").split()
    assert {word for row in rows for cell in row for word in cell.split()} <= set(shown)
