"""The device part of a file with kernels in Triton, as a module; Triton is imported by it."""

from __future__ import annotations

import hashlib
import linecache
import sys
import traceback
from types import ModuleType

from autotune.errors import CompileError

_OLDER = {  # what messages say of which, and where it is
    "Block pointers have been removed": "Triton 3.5 to 3.8 have them: install the version of your program",
    "unexpected keyword argument 'trans_": "older versions had it: write tl.trans(...) around the operand",
    "**meta parameters": "Triton 1 had them: make each a parameter of its own, with tl.constexpr",
    "No module named 'triton.": "another version of Triton has it: install the version of your program",
}


def of_older_versions(message: str) -> str:
    """What to do about a message on what only older versions of Triton take; empty for another one."""
    return next((f"; {advice}" for words, advice in _OLDER.items() if words in message), "")


def executed(source: str) -> ModuleType:
    """The source as a module whose text Triton can read; raises CompileError."""
    name = f"autotune_triton_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = sys.modules[name] = ModuleType(name)
    try:
        exec(compile(source, file, "exec"), module.__dict__)
    except Exception as error:  # noqa: BLE001 - whatever the user's file raises
        del sys.modules[name]
        frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == file]
        number = frames[-1].lineno if frames else getattr(error, "lineno", 1)  # of a SyntaxError
        below = source.splitlines()[(number or 1) - 1 :]
        line = next((one for one in below if not one.startswith("@")), "")  # of what a decorator refuses
        text = f"`{line.strip()}` cannot be run: {type(error).__name__}: {error}"
        advice = of_older_versions(text)
        if not advice and isinstance(error, ModuleNotFoundError):
            advice = f"; the kernel needs it: install {error.name}, or name its folder in PYTHONPATH"
        raise CompileError(text + advice) from None
    return module
