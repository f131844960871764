"""What comes from files and other programs is text wherever it goes: terminal, spreadsheet, C."""

import csv
import re
import shutil
import subprocess
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.cli.output import emit
from autotune.cli.show import TrialRow, trials_csv
from autotune.cli.tables import table
from autotune.core.escapes import c_string, csv_text, terminal_text
from autotune.core.trials import Failure, Status, Trial
from autotune.interop.c_header import header
from tests.cache_example import DEVICE, PROVENANCE, entry, record
from tests.cache_files import write
from tests.conftest import ROOT, run_in_process

HOSTILE = "\x1b]0;mine\x07\x1b[2J\x9b31m\rhidden\u202egnp.\u2066\u200b\u2028\x00\x7f[bold]"
SHOWN = r"\x1b]0;mine\x07\x1b[2J\x9b31m\rhidden\u202egnp.\u2066\u200b\u2028\x00\x7f[bold]"


@given(st.text())
def test_no_control_character_is_left_and_plain_text_stays(text):
    found = terminal_text(text)
    assert not re.search(r"[^\S\n\t ]", re.sub(r"[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]", "", found))
    assert all(letter in "\n\t" or ord(letter) not in {*range(32), *range(127, 160)} for letter in found)
    assert terminal_text(found) == found and (found == text or not text.isprintable())


def test_what_a_terminal_obeys_is_shown():
    assert terminal_text(HOSTILE) == SHOWN
    assert terminal_text("Größe ≤ 3\n\t漢字") == "Größe ≤ 3\n\t漢字"


def test_tables_show_it_too(capsys):
    emit(table((HOSTILE, "n"), [(HOSTILE, "1")], title=HOSTILE), HOSTILE)
    assert capsys.readouterr().out.count(SHOWN) == 4


def test_names_of_files_options_and_errors_are_shown(tmp_path):
    for words in (("show", f"{HOSTILE[:20]}.jsonl"), ("list", f"--{HOSTILE[:20]}"), (f"x{HOSTILE[:20]}",)):
        done = run_in_process(tmp_path, *words)
        assert done.returncode != 0 and "\x1b" not in done.stderr and r"\x1b" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        *(("list",), ("best", "reduce", "--size", "n=64"), ("best", "reduce", "--size", "n=99")),
        *(("compare", "reduce"), ("report", "-o", "r.html"), ("merge", "cache", "--into", "all")),
    ],
)
def test_what_a_cache_holds_is_shown(tmp_path, words):
    named = replace(DEVICE, name=HOSTILE, vendor=HOSTILE, driver=HOSTILE)
    origin = replace(PROVENANCE, engine=HOSTILE, host=HOSTILE, checks=HOSTILE)
    write(tmp_path / "cache", named, replace(record(entry(64, provenance=origin)), source=HOSTILE))
    write(tmp_path / "cache", replace(named, slug="other", name=f"b{HOSTILE}"), record(entry(64)))
    done = run_in_process(tmp_path, *words)
    said = done.stdout + done.stderr
    assert said and said == terminal_text(said)


def test_a_spreadsheet_takes_no_text_for_a_formula():
    script = (ROOT / "autotune/report/assets/trials.js").read_text()
    (signs,) = re.findall(r"/\^\[(.*?)\]/\.test\(value\)", script)
    rule = re.compile(f"[{signs}]")  # that of the page's own download
    for text in (chr(number) + "HYPERLINK(1)" for number in range(1, 0x200)):
        assert csv_text(text) == (f"'{text}" if rule.match(text) else text)
    trial = Trial({"A": -1}, "key", Failure(Status.COMPILE_ERROR, "=1+1"))
    row = list(csv.reader(StringIO(trials_csv([TrialRow(Path("-x.jsonl"), trial)]))))[1]
    assert (row[0], row[1], row[-1]) == ("'-x.jsonl", "-1", "'=1+1")


needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
STANDARDS = [("c", "c99"), ("c", "gnu17"), ("c++", "c++14"), ("c++", "gnu++17")]


@needs_compiler
@pytest.mark.parametrize(("language", "standard"), STANDARDS)
def test_a_text_in_c_is_that_text(tmp_path, language, standard):
    texts = ['??/" ; #error', "\\\n\"'\x01" + "1", "über\u202e", "??=define", "%s\x7f7", "*/ // \\"]
    lines = "".join(f"puts({c_string(text)});\n" for text in texts)
    source = f"#include <stdio.h>\nint main(void) {{\n{lines}#line 7 {c_string(texts[0])}\nreturn 0; }}"
    program = tmp_path / "program"
    command = ["gcc" if language == "c" else "g++", "-x", language, f"-std={standard}", "-trigraphs", "-"]
    subprocess.run([*command, "-o", program], input=source.encode(), check=True)
    assert subprocess.run([program], stdout=subprocess.PIPE).stdout.decode() == "\n".join([*texts, ""])


@needs_compiler
@pytest.mark.parametrize(("language", "standard"), STANDARDS)
def test_a_header_of_a_hostile_cache_holds_no_code_of_it(tmp_path, language, standard):
    evil = '??/" }; int evil(void) { return 42; } static const char *rest[] = { 0, //'
    for place, field in enumerate(("vendor", "architecture", "name", "driver")):
        write(tmp_path, replace(DEVICE, **{field: evil}, slug=f"gpu-{place}"), record(entry(64)))
    write(tmp_path, replace(DEVICE, vendor="GPU 0", architecture="gpu_1", slug="gpu-9"), record(entry(64)))
    text = header("reduce", tmp_path)
    assert "evil(void)" not in text
    command = ["gcc" if language == "c" else "g++", "-x", language, f"-std={standard}", "-fsyntax-only", "-"]
    use = "\nint evil; int main(void) { return autotune_reduce_gpu_0 + autotune_reduce_other; }\n"
    subprocess.run([*command, "-Werror", "-trigraphs"], input=(text + use).encode(), check=True)
