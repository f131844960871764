"""Binaries are found again by content, and a cache that is damaged, full or not writable costs time only."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.compilers.binary_cache import (
    BinaryCache,
    CachedCompiler,
    content_key,
    decode,
    default_folder,
    encode,
)
from autotune.core.trials import Binary
from autotune.errors import CompileError

BINARY = Binary(b"\x7fELF\n\0code", "ab" * 32, "a warning\n", 12.5, registers=40, spill_bytes=0)


class Compiler:
    """Makes a binary of any text but "broken", and counts."""

    def __init__(self, identity="test 1"):
        self.identity = identity
        self.compiled = 0

    def compile(self, source, options, names=()):
        self.compiled += 1
        if source == "broken":
            raise CompileError("as it says")
        data = repr((source, options)).encode()
        return Binary(data, hashlib.sha256(data).hexdigest(), "", 3.0)


@pytest.fixture
def cache(tmp_path):
    return BinaryCache(tmp_path / "new" / "folder")


def files(folder):
    return [file for file in folder.rglob("*") if file.is_file()]


def test_a_stored_binary_is_found_and_marked_as_cached(cache):
    cache.put("k" * 64, BINARY)
    assert cache.get("k" * 64) == replace(BINARY, cached=True, compile_ms=0.0)
    assert cache.get("l" * 64) is None


@given(st.binary(), st.text(), st.none() | st.integers(0, 255))
def test_any_content_survives(tmp_path_factory, data, log, registers):
    cache = BinaryCache(tmp_path_factory.mktemp("any"))
    binary = Binary(data, "", log, 0.0, registers=registers, cached=True)
    cache.put("key", binary)
    assert cache.get("key") == binary


def test_a_second_compiler_finds_what_the_first_one_made(tmp_path):
    first, second = Compiler(), Compiler()
    made = CachedCompiler(first, BinaryCache(tmp_path)).compile("source", ("-O1",))
    found = CachedCompiler(second, BinaryCache(tmp_path)).compile("source", ("-O1",))
    assert (first.compiled, second.compiled) == (1, 0)
    assert not made.cached and made.compile_ms == 3.0
    assert found == replace(made, cached=True, compile_ms=0.0)


@pytest.mark.parametrize(
    ("identity", "source", "options"),
    [
        ("test 2", "source", ("-O1",)),
        ("test 1", "source ", ("-O1",)),
        ("test 1", "source", ("-O2",)),
        ("test 1", "source", ()),
        ("test 1", "source", ("-O1", "-O1")),
    ],
)
def test_another_compiler_source_or_options_is_another_binary(tmp_path, identity, source, options):
    CachedCompiler(Compiler(), BinaryCache(tmp_path)).compile("source", ("-O1",))
    other = Compiler(identity)
    assert not CachedCompiler(other, BinaryCache(tmp_path)).compile(source, options).cached
    assert other.compiled == 1


@pytest.mark.parametrize(
    ("identity", "option"),
    [
        (None, "-O1"),
        ("test 1", "-I/usr/include"),
        ("test 1", "--include-path=headers"),
        ("test 1", "-include"),
        ("test 1", "--pre-include=a.h"),
        ("test 1", "-isystem"),
        ("test 1", "--options-file=a"),
    ],
)
def test_binaries_that_depend_on_more_than_their_key_are_not_cached(tmp_path, identity, option):
    compiler = Compiler(identity)
    for _ in range(2):
        assert not CachedCompiler(compiler, BinaryCache(tmp_path)).compile("source", (option,)).cached
    assert compiler.compiled == 2 and not files(tmp_path)


def test_compile_errors_are_not_cached(tmp_path):
    compiler = Compiler()
    for _ in range(2):
        with pytest.raises(CompileError, match="as it says"):
            CachedCompiler(compiler, BinaryCache(tmp_path)).compile("broken", ())
    assert compiler.compiled == 2 and not files(tmp_path)


@pytest.mark.parametrize("position", [0, 20, 60, -1])
def test_a_corrupt_file_is_compiled_again_and_replaced(tmp_path, position):
    compiler = CachedCompiler(Compiler(), BinaryCache(tmp_path))
    compiler.compile("source", ())
    (file,) = files(tmp_path)
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)
    assert not compiler.compile("source", ()).cached
    assert compiler.compile("source", ()).cached


def test_a_truncated_or_renamed_file_is_compiled_again(tmp_path):
    compiler = CachedCompiler(Compiler(), BinaryCache(tmp_path))
    compiler.compile("source", ())
    (file,) = files(tmp_path)
    whole = file.read_bytes()
    for length in (0, 10, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert not compiler.compile("source", ()).cached
    (tmp_path / content_key("test 1", "other", ())).write_bytes(whole)
    assert not compiler.compile("other", ()).cached


def test_the_least_recently_used_binaries_are_removed_first(tmp_path):
    cache = BinaryCache(tmp_path, limit_bytes=20_000)
    binary = replace(BINARY, data=bytes(1000))
    for number in range(10):
        cache.put(f"old{number}", binary)
        os.utime(tmp_path / f"old{number}", (number + 1, number + 1))
    assert cache.get("old0") is not None  # and so it is not the oldest any more
    for number in range(12):
        cache.put(f"new{number}", binary)
    kept = {file.name for file in files(tmp_path)}
    assert sum(file.stat().st_size for file in files(tmp_path)) <= 20_000
    assert "old0" in kept and "new11" in kept
    assert "old1" not in kept and "old2" not in kept


def test_a_read_only_folder_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    compiler = Compiler()
    for _ in range(2):
        cached = CachedCompiler(compiler, BinaryCache(tmp_path / "file" / "folder"))
        assert cached.compile("source", ()).compile_ms == 3.0
    assert compiler.compiled == 2


def test_the_folder_is_the_users_cache(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_folder() == Path("/somewhere/autotune/binaries")
    monkeypatch.setenv("HOME", "/home/user")
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert default_folder() == Path("/home/user/.cache/autotune/binaries")


def test_without_a_home_that_can_be_written_there_is_no_cache(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/proc/none")
    compiler = CachedCompiler(Compiler(), BinaryCache(default_folder()))
    assert not any(compiler.compile("source", ()).cached for _ in range(2))


def test_files_that_other_users_may_write_are_ignored(tmp_path):
    folder = tmp_path / "folder"
    compiler = CachedCompiler(Compiler(), BinaryCache(folder))
    compiler.compile("source", ())
    (file,) = files(folder)
    for path, mode in ((file, 0o622), (folder, 0o770), (folder, 0o707)):
        before = path.stat().st_mode
        path.chmod(mode)
        assert not compiler.compile("source", ()).cached
        path.chmod(before)
    assert compiler.compile("source", ()).cached
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)
        assert not compiler.compile("source", ()).cached


def test_a_link_or_a_pipe_is_no_binary(tmp_path):
    compiler = CachedCompiler(Compiler(), BinaryCache(tmp_path / "folder"))
    compiler.compile("source", ())
    (file,) = files(tmp_path)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert not compiler.compile("source", ()).cached
    file.unlink()
    os.mkfifo(file)
    assert not compiler.compile("source", ()).cached


def test_a_file_of_another_version_is_read_if_it_has_what_this_one_needs():
    binary = Binary(b"code", "hash", "log", 2.0, registers=40)
    head, _, data = encode(binary, "key").partition(b'{"')[2].partition(b"\n")
    facts = json.loads(b'{"' + head)
    older, newer = facts | {"stalls": 3}, {name: facts[name] for name in facts if name != "registers"}
    assert decode(signed(older, data), "key") == replace(binary, cached=True, compile_ms=0.0)
    assert decode(signed(newer, data), "key") is None


def signed(facts, data):
    body = json.dumps(facts).encode() + b"\n" + data
    return b"autotune binary\n" + hashlib.sha256(body).digest() + body
