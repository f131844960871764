"""The device part of a file with kernels in Triton, as a module; Triton is imported by it."""

from __future__ import annotations

import hashlib
import linecache
import sys
from types import ModuleType

from autotune.errors import CompileError


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
        raise CompileError(f"the kernel's file cannot be run: {type(error).__name__}: {error}") from None
    return module
