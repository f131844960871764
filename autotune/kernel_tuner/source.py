"""The source of a kernel as a script gives it, with the definitions that Kernel Tuner puts in front of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernel_tuner import util

from autotune.compilers.kernel_source import source_of_text
from autotune.core.launch_plan import is_option
from autotune.errors import InputError
from autotune.kernel_tuner.call import KernelCall
from autotune.kernel_tuner.launch import LaunchRule
from autotune.kernel_tuner.parameters import Params

_DIALECTS = {"OPENCL": "opencl", "CUDA": "cuda", "CUPY": "cuda", "NVCUDA": "cuda", "PYCUDA": "cuda"}


def complete_source(
    call: KernelCall, rule: LaunchRule, dialect: str, params: Params, name: str, mark: str = ""
) -> str:
    """The source with the definitions of Kernel Tuner; `name` and `mark` as in `source_of_text`."""
    source = source_of_text(source_text(call.kernel_source, params), name, mark)
    numbers = {one: int(value) if isinstance(value, bool) else value for one, value in params.items()}
    shape = (rule.grid(params), rule.block(params), rule.block_names)
    try:
        _, text = util.prepare_kernel_string("", source.text, numbers, *shape, dialect.upper(), call.defines)
    except ValueError as error:
        raise InputError(f"defines: {error}") from None
    return str(text)


def source_text(kernel_source: Any, params: Params) -> str:
    """The source as a text: of a file, of a function, or as it is; raises InputError."""
    if isinstance(kernel_source, list | tuple):
        raise InputError(
            "kernel_source: a list has host code, which is not run; give the kernel's own source"
        )
    try:
        return str(util.get_kernel_string(kernel_source, params))
    except OSError as error:
        raise InputError(f"kernel_source: {kernel_source}: cannot be read: {error.strerror}") from None
    except TypeError:
        raise InputError("kernel_source: expected a text, a path or a function that returns a text") from None


def dialect_of(call: KernelCall, text: str) -> str:
    """The dialect of a source, by `lang` or by its words; raises InputError."""
    if call.lang is None:
        if "__kernel" in text:
            return "opencl"
        if "__global__" in text:
            return "cuda"
        raise InputError(
            'lang: neither __kernel nor __global__ is in the source; give lang="OpenCL" or "CUDA"'
        )
    if call.lang.upper() not in _DIALECTS:
        raise InputError(
            f"lang {call.lang!r} is not supported: kernels of OpenCL and CUDA are; use kernel_tuner for it"
        )
    return _DIALECTS[call.lang.upper()]


def compiler_options(given: Sequence[str] | None) -> dict[str, str]:
    """Options of the compiler as a space has them; raises InputError for those that name a file."""
    options: dict[str, str] = {}
    for option in given or ():
        flag, _, value = option.partition("=")
        if not is_option(flag) or (value and not is_option(f"-{value}")):
            raise InputError(f"compiler_options: {option!r} is not supported; give plain options such as -O3")
        options[flag] = repr(value) if value else "True"
    return options
