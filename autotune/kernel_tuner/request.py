"""What a script asks for, as a space: checked in full before anything is compiled."""

from __future__ import annotations

import hashlib
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from kernel_tuner import util
from numpy.typing import NDArray

from autotune.api.space import Space
from autotune.compilers.kernel_source import SourceText, source_of_text
from autotune.core.launch_plan import is_entry, is_option
from autotune.core.records import Config, LaunchSpec
from autotune.errors import InputError
from autotune.evaluation.stored_inputs import content_sha256
from autotune.kernel_tuner.arguments import (
    KernelArguments,
    answer_on_host,
    check_answer,
    expected_results,
    read_arguments,
)
from autotune.kernel_tuner.launch import BLOCK_NAMES, LaunchRule
from autotune.kernel_tuner.observers import Observers, read_observers
from autotune.kernel_tuner.parameters import (
    Parameters,
    Params,
    as_constraint,
    device_settings,
    read_parameters,
    read_restriction,
)
from autotune.space.functions import Functions, Values
from autotune.space.recorded import bare_spec
from autotune.space.spec import Constraint

RTOL = "1e-05"  # that of numpy.allclose, which Kernel Tuner compares with
_DIALECTS = {"OPENCL": "opencl", "CUDA": "cuda", "CUPY": "cuda", "NVCUDA": "cuda", "PYCUDA": "cuda"}
_AXES = "xyz"


@dataclass(frozen=True)
class KernelCall:
    """What a script gives to `tune_kernel` or `run_kernel`, by the names that Kernel Tuner documents.

    `grid_div` has those of x, y and z.
    """

    kernel_name: str
    kernel_source: Any
    problem_size: Any
    arguments: Sequence[Any]
    tune_params: Mapping[str, Sequence[Any]]
    grid_div: tuple[Any, Any, Any] = (None, None, None)
    restrictions: Any = None
    answer: Sequence[Any] | None = None
    atol: float = 1e-6
    verify: Callable[..., Any] | None = None
    lang: str | None = None
    device: int = 0
    smem_args: Mapping[str, Any] | None = None
    cmem_args: Mapping[str, Any] | None = None
    compiler_options: Sequence[str] | None = None
    defines: Mapping[str, Any] | None = None
    block_size_names: Sequence[str] | None = None
    observers: Sequence[Any] | None = None


@dataclass(frozen=True)
class Request:
    """One kernel with its parameters and arguments."""

    space: Space
    parameters: Parameters
    arguments: KernelArguments
    observers: Observers
    device: str
    digest: str  # of all that the trials depend on


def read_request(call: KernelCall) -> Request:
    """Make a space of what a script gives; raises InputError that says what to change."""
    parameters = read_parameters(call.tune_params)
    first = {name: next(iter(values.values())) for name, values in parameters.given.items()}
    text = _source(call.kernel_source, first)
    dialect = _dialect(call.lang, text)
    _check_kernel(call.kernel_name, dialect, call.cmem_args)
    known = read_arguments(call.arguments, call.kernel_name, text, call.cmem_args, parameters)
    watching = read_observers(call.observers)
    rule = _launch_rule(call)
    rule.check(first)
    call = replace(call, answer=answer_on_host(call.answer))
    listed = _listed(call.restrictions)
    constraints, others = _restrictions(listed, parameters)
    limit = _threads_limit(rule, parameters)
    source = _sources(call, rule, dialect, parameters)
    verifier = _verifier(call, known, parameters, watching)
    expected = {} if verifier else expected_results(call.answer, known)
    hashes = {name: content_sha256(array) for name, array in known.arrays.items()}
    functions = Functions(
        reference=lambda _inputs, _sizes: expected,
        inputs=lambda _sizes, _rng: known.arrays,
        hashes=hashes,
        constraints=(*others, *([] if isinstance(limit, str) else [limit])),
        values=_launch_values(rule, known, parameters),
        source=source,
        verify=verifier,
        verified=_verified(call.answer, known),
    )
    default = Config({one.name: one.values[0] for one in parameters.listed})
    sizes = _sizes(call.problem_size, known)
    shown = source_of_text(source(default), f"{call.kernel_name}{'.cl' if dialect == 'opencl' else '.cu'}")
    spec = replace(
        bare_spec(re.sub(r"\W+", "_", call.kernel_name).strip("_"), parameters.listed, default, sizes),
        path=Path(f"tune_kernel({call.kernel_name!r})"),
        sha256=hashlib.sha256(repr((parameters.given, constraints)).encode()).hexdigest(),
        dialect=dialect,
        source=shown.path,
        reference=Path("answer"),
        constraints=tuple(Constraint(one, 1) for one in [*constraints, limit] if isinstance(one, str)),
        arguments=known.specs,
        launch=_launches(call.kernel_name, known, bool(call.smem_args)),
        compiler_options={dialect: _options(call.compiler_options)},
        rtol=RTOL,
        atol=repr(float(call.atol)),
        functions=functions,
        device=device_settings(parameters),
    )
    contents = [
        *hashes.values(),
        *(content_sha256(np.asarray(one)) for one in call.answer or () if one is not None),
    ]
    given, specs = parameters.given, known.specs
    identity = (shown.sha256, given, specs, contents, repr(listed), sizes, call.atol, call.defines)
    return Request(
        space=Space.of(spec, SourceText(shown.path, shown.text, shown.sha256)),
        parameters=parameters,
        arguments=known,
        observers=watching,
        device=f"{'opencl' if dialect == 'opencl' else 'cuda'}:{call.device}",
        digest=hashlib.sha256(repr(identity).encode()).hexdigest()[:16],
    )


def _sources(
    call: KernelCall, rule: LaunchRule, dialect: str, parameters: Parameters
) -> Callable[[Config], str]:
    """The function that gives the source of a configuration."""

    def source(config: Config) -> str:
        params = parameters.decode(config)
        return _define(_source(call.kernel_source, params), params, rule, call.defines, dialect)

    return source


def _restrictions(
    listed: Sequence[Any], parameters: Parameters
) -> tuple[list[Any], list[Callable[[Params], bool]]]:
    """Part restrictions into those that a constraint of a space file can say, and functions."""
    constraints = [one for one in listed if as_constraint(one, parameters) is not None]
    return constraints, [read_restriction(one, parameters) for one in listed if one not in constraints]


def _launch_values(
    rule: LaunchRule, known: KernelArguments, parameters: Parameters
) -> dict[str, Callable[[Values], int]]:
    """The functions of a configuration that give its launch, and which arguments it takes."""
    values = {name: _of_launch(compute, parameters) for name, compute in rule.values().items()}
    return values | {"passed": _of_launch(lambda params: known.passed.index(known.names(params)), parameters)}


def _check_kernel(name: str, dialect: str, cmem_args: Mapping[str, Any] | None) -> None:
    """Raise InputError for what cannot be a kernel's name, and for constants that its language lacks."""
    if not is_entry(name):
        raise InputError(f"kernel_name {name!r}: expected a name, such as sum or sum<float>")
    if cmem_args and dialect != "cuda":
        raise InputError(
            "cmem_args: only CUDA has them; pass the array as a `__constant` argument of the kernel"
        )


def _launch_rule(call: KernelCall) -> LaunchRule:
    """The rule of launches, with Kernel Tuner's names for the sizes of a block that are not given."""
    given = tuple(call.block_size_names or ())
    names = (*given, *BLOCK_NAMES[len(given) :])
    return LaunchRule(call.problem_size, call.grid_div, names, (call.smem_args or {}).get("size", 0))


def _threads_limit(rule: LaunchRule, parameters: Parameters) -> str | Callable[[Values], bool]:
    """The condition that a block is not too large for the device: an expression where it can be one."""
    pairs = zip(rule.block_names, rule.block({}), strict=True)
    extents = [name if name in parameters.given else str(size) for name, size in pairs]
    named = [parameters.given[name] for name in extents if name in parameters.given]
    if all(isinstance(value, int) for values in named for pair in values.items() for value in pair):
        return f"{' * '.join(extents)} <= device.max_threads_per_block"

    def fits(values: Values) -> bool:
        most: int = values["device.max_threads_per_block"]
        return math.prod(rule.block(parameters.decode(values))) <= most

    return fits


def _of_launch(compute: Callable[[Params], int], parameters: Parameters) -> Callable[[Values], int]:
    """A number of the launch as a function of a space's values."""
    return lambda values: compute(parameters.decode(values))


def _launches(kernel_name: str, known: KernelArguments, has_shared_memory: bool) -> tuple[LaunchSpec, ...]:
    """A launch for each list of arguments, of which every configuration has one."""
    return tuple(
        LaunchSpec(
            entry=kernel_name,
            grid=tuple(f"grid_{axis}" for axis in _AXES),
            block=tuple(f"block_{axis}" for axis in _AXES),
            arguments=names,
            shared_bytes="shared_bytes" if has_shared_memory else "0",
            when=f"passed == {number}" if len(known.passed) > 1 else "True",
        )
        for number, names in enumerate(known.passed)
    )


def _listed(restrictions: Any) -> list[Any]:
    if restrictions is None:
        return []
    return list(restrictions) if isinstance(restrictions, list | tuple) else [restrictions]


def _source(kernel_source: Any, params: Mapping[str, Any]) -> str:
    """The source as a text: of a file, of a function, or as it is."""
    if isinstance(kernel_source, list | tuple):
        raise InputError(
            "kernel_source: a list has host code, which is not run; give the kernel's own source"
        )
    try:
        text = util.get_kernel_string(kernel_source, params)
    except OSError as error:
        raise InputError(f"kernel_source: {kernel_source}: cannot be read: {error.strerror}") from None
    except TypeError:
        raise InputError("kernel_source: expected a text, a path or a function that returns a text") from None
    return str(text)


def _dialect(lang: str | None, text: str) -> str:
    if lang is None:
        if "__kernel" in text:
            return "opencl"
        if "__global__" in text:
            return "cuda"
        raise InputError(
            'lang: neither __kernel nor __global__ is in the source; give lang="OpenCL" or "CUDA"'
        )
    if lang.upper() not in _DIALECTS:
        raise InputError(
            f"lang {lang!r} is not supported: kernels of OpenCL and CUDA are; use kernel_tuner for it"
        )
    return _DIALECTS[lang.upper()]


def _define(
    text: str,
    params: Mapping[str, Any],
    rule: LaunchRule,
    defines: Mapping[str, Any] | None,
    dialect: str,
) -> str:
    """A source with the definitions that Kernel Tuner puts in front of it."""
    if defines is None:
        grid = {f"grid_size_{axis}": size for axis, size in zip(_AXES, rule.grid(params), strict=True)}
        block = dict(zip(rule.block_names, rule.block(params), strict=True))
        defines = {**grid, **block, **params, "kernel_tuner": 1}
    head = ""
    for name, value in defines.items():
        shown = value(params) if callable(value) else value
        shown = str(int(shown) if isinstance(shown, bool) else shown).replace("\n", "\\\n")
        if "loop_unroll_factor" not in name or dialect != "cuda":
            head += f"#define {name} {shown}\n"
        elif shown == "0":  # the compiler decides
            text = re.sub(rf"\n[ \t]*#pragma\s+unroll\s+{name}\b", "\n", text)
        else:  # `#pragma unroll` takes a constant, and no macro
            head += f"constexpr int {name} = {shown};\n"
    return f"{head}#line 1\n{text}"


def _options(given: Sequence[str] | None) -> dict[str, str]:
    """Options of the compiler as a space has them; raises InputError for those that name a file."""
    options: dict[str, str] = {}
    for option in given or ():
        flag, _, value = option.partition("=")
        if not is_option(option.partition("=")[0]) or (value and not is_option(f"-{value}")):
            raise InputError(f"compiler_options: {option!r} is not supported; give plain options such as -O3")
        options[flag] = repr(value) if value else "True"
    return options


def _sizes(problem_size: Any, arguments: KernelArguments) -> dict[str, int]:
    """The problem's sizes where they are numbers, else that of the largest array."""
    listed = problem_size if isinstance(problem_size, tuple | list) else (problem_size,)
    if all(isinstance(size, int | np.integer) for size in listed):
        return {axis: int(size) for axis, size in zip(_AXES, listed, strict=False)}
    return {"n": max((array.size for array in arguments.arrays.values()), default=1)}


def _verified(answer: Sequence[Any] | None, known: KernelArguments) -> tuple[str, ...] | None:
    """The arrays that are read back to be verified: those with an answer; all without any."""
    if answer is None or len(answer) != len(known.values):
        return None
    pairs = zip(answer, known.alternatives, strict=True)
    return tuple(name for value, names in pairs if value is not None for name in names)


def _verifier(
    call: KernelCall, arguments: KernelArguments, parameters: Parameters, observers: Observers
) -> Callable[[Config, Mapping[str, NDArray[Any]]], Any] | None:
    """What judges, in this process, the arrays that a run leaves; None where a comparison elsewhere does.

    That is the script's own `verify`; with observers of outputs it is they, as in Kernel Tuner; and a
    comparison with the answer of what a Tunable chose.
    """
    verify, answer, atol = call.verify, call.answer, call.atol
    has_choice = answer is not None and len(arguments.passed) > 1
    if verify is None and not observers.outputs and not has_choice:
        return None
    if answer is not None and verify is None:
        check_answer(answer, arguments)
    takes_atol = verify is not None and "atol" in inspect.signature(verify).parameters

    def judge(config: Config, found: Mapping[str, NDArray[Any]]) -> Any:
        outputs = arguments.outputs(found, parameters.decode(config))
        observers.see(config.key, answer, outputs)
        if verify is not None:
            return verify(answer, outputs, atol=atol) if takes_atol else verify(answer, outputs)
        return bool(observers.outputs) or _is_close(answer or (), outputs, atol)

    judge.__qualname__ = getattr(verify, "__qualname__", "answer")
    return judge


def _is_close(answer: Sequence[Any], outputs: Sequence[Any], atol: float) -> bool:
    pairs = [(value, output) for value, output in zip(answer, outputs, strict=True) if value is not None]
    return all(np.allclose(np.ravel(value), np.ravel(output), atol=atol) for value, output in pairs)
