"""What is no ELF file, or a part of one, is refused with ValueError and nothing else."""

import subprocess

import pytest

from autotune.compilers.elf import read_sections, read_symbols


@pytest.fixture(scope="module")
def object_file(tmp_path_factory):

    folder = tmp_path_factory.mktemp("object")
    (folder / "a.c").write_text("int twice(int x) { return 2 * x; }\nint other = 3;\n")
    subprocess.run(["cc", "-c", "a.c", "-o", "a.o"], cwd=folder, check=True)
    return (folder / "a.o").read_bytes()


def test_sections_and_symbols_have_their_names(object_file):
    sections = read_sections(object_file)
    assert {".text", ".data", ".symtab"} <= {section.name for section in sections}
    symbols = {symbol.name: symbol for symbol in read_symbols(sections)}
    assert {"twice", "other"} <= symbols.keys()
    assert [symbol.name for symbol in symbols.values() if symbol.is_file] == ["a.c"]
    assert sections[symbols["twice"].section].name == ".text"


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"not an ELF file at all, but long enough for a head"])
def test_another_file_is_refused(content):
    with pytest.raises(ValueError, match="ELF"):
        read_sections(content)
