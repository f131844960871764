"""Compile Triton kernels for NVIDIA's and AMD's GPUs, which needs neither GPU nor driver."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import triton
import triton.compiler.code_generator  # Triton imports it when it first compiles, in each process
from triton import knobs
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure

from autotune.compilers.amd_metadata import read_kernel
from autotune.compilers.base import triton_name
from autotune.compilers.occupancy import too_much_shared_memory
from autotune.compilers.triton_binary import TritonBinary, joined, pack
from autotune.compilers.triton_constants import typed
from autotune.compilers.triton_modules import executed, of_older_versions
from autotune.compilers.triton_options import foreign_float8, own_options
from autotune.core.c_types import element_bytes
from autotune.core.launch_plan import AMD_OPTIONS, NO_ARRAY, TRITON_OPTIONS, TRITON_TYPES
from autotune.core.trials import Binary
from autotune.errors import CompileError, LaunchError
from autotune.hardware.architectures import ARCHITECTURES, WARP
from autotune.sources.triton import entry_signature

_OPTIONS = (*TRITON_OPTIONS, *AMD_OPTIONS)
_ALIGNED = ":16"
_BYTES = {kind: element_bytes(dtype) for dtype, kind in TRITON_TYPES.items()}
_PARAMETERS = re.compile(r"\.entry\s+\w+\s*\((.*?)\)", re.DOTALL)
_ASSEMBLER = re.compile(r"error +: (.+)")  # what ptxas says of an instruction
_PARAMETER_TYPE = re.compile(r"\.param\s+\.[a-z](\d+)\b[^,]*?(\[\d+\])?\s*(?:,|$)")


class TritonCompiler:
    """Compiles for one architecture, such as "sm_90" or "gfx942".

    A source is the device part of a Python file. A name is an entry such as `add('*fp32:16', 'i32',
    BLOCK=128, num_warps=4)`: the types of the arguments, `:16` where they are multiples of 16, and `=1` where
    they are 1; the constants of the kernel; options of Triton.
    """

    def __init__(self, architecture: str) -> None:
        number = re.sub(r"\D", "", architecture)
        self._architecture = ARCHITECTURES.get(architecture) or ARCHITECTURES.get(f"sm_{number}")
        if self._architecture is not None and self._architecture.is_amd:
            self._target = GPUTarget("hip", architecture, self._architecture.device.warp_size)
        else:
            self._target = GPUTarget("cuda", int(number), WARP)
        library = Path(triton.__file__).parent / "_C" / "libtriton.so"
        self.files = (library, Path(triton.__file__))
        self.name = triton_name()  # in stored results
        status = library.stat()
        self.identity: str | None = (
            f"{self.name} {status.st_size}/{status.st_mtime_ns} {architecture} fp_fusion"
        )

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """Compile the kernels of these entries.

        Raises:
            CompileError: Triton refuses a kernel; has its message.
            LaunchError: A kernel needs more shared memory than a block can have.
        """
        module = _load(source)
        first_ones = firsts(source, names)
        with knobs.compilation.scope():
            knobs.compilation.disable_line_info = True  # binaries are smaller, and do not name files
            knobs.compilation.allow_non_constexpr_globals = True  # nothing changes those of an extract
            binaries = {name: self._binary(module, name) for name in dict.fromkeys(first_ones)}
        return joined({name: binaries[first] for name, first in zip(names, first_ones, strict=True)})

    def _binary(self, module: ModuleType, name: str) -> Binary:
        began = time.perf_counter()
        kernel = self._compiled(_task(module, name))
        used = kernel.resources
        data = pack({name: kernel})
        return Binary(
            data,
            hashlib.sha256(data).hexdigest(),
            "",
            (time.perf_counter() - began) * 1e3,
            registers=used.registers,
            spill_bytes=used.spill_bytes,
            shared_bytes=kernel.shared_bytes,
            symbols={name: kernel.symbol},
        )

    def _compiled(self, task: _Task) -> TritonBinary:
        """Run the stages of Triton's compiler; raises CompileError and LaunchError.

        `triton.compile` would hash Triton's own files first, and store all that it makes. A kernel that needs
        too much shared memory is given up here, before the last stages.
        """
        own = own_options(task.options, self._architecture)
        if self._architecture and (foreign := foreign_float8(self._architecture, task.signature.values())):
            raise CompileError(foreign)
        source = ASTSource(task.function, task.signature, constexprs=task.constants, attrs=task.attributes)
        backend, stages, made = make_backend(self._target), dict[str, Any](), dict[str, Any]()
        try:
            options = backend.parse_options({"enable_fp_fusion": True} | own)
            backend.add_stages(stages, options, source.language)
            facts = {"target": self._target, **vars(options)}
            context = ir.context()
            ir.load_dialects(context)
            backend.load_dialects(context)
            implementations, modules = backend.get_codegen_implementation(options), backend.get_module_map()
            module = source.make_ir(self._target, options, implementations, modules, context)
            for name, stage in stages.items():
                made[name] = module = stage(module, facts)
                reason = self._architecture and too_much_shared_memory(
                    self._architecture, facts.get("shared", 0)
                )
                if reason:
                    raise LaunchError(f"{reason}; fewer num_stages or smaller tiles need less")
        except LaunchError:
            raise
        except Exception as error:  # noqa: BLE001 - Triton raises whatever its passes do
            raise CompileError(_message(error, task.function)) from None
        if self._target.backend == "hip":
            resources, sizes = read_kernel(made["amdgcn"])
            kernel = _kernel(facts, sizes, made["hsaco"], task.passed)
            return replace(kernel, warp_size=self._target.warp_size, amd=resources)
        return _kernel(facts, _parameter_bytes(made["ptx"]), made["cubin"], task.passed)


def firsts(source: str, names: Sequence[str]) -> tuple[str, ...]:
    """For each entry, the first entry that gets the same code; raises CompileError.

    Entries may differ in values that the kernel is not compiled for.
    """
    module, known = _load(source), dict[str, str]()
    return tuple(known.setdefault(_task(module, name).key, name) for name in names)


def _load(source: str) -> ModuleType:
    """The source as a module to compile; raises CompileError."""
    if knobs.runtime.interpret:  # a program of its own may have asked for that
        raise CompileError(
            "TRITON_INTERPRET is set, which leaves nothing to compile: unset it in this program"
        )
    return executed(source)


class _Task(NamedTuple):
    """The specialisation that Triton compiles a function for."""

    function: Any
    signature: dict[str, str]
    constants: dict[str, Any]
    attributes: dict[tuple[int], list[list[Any]]]
    options: dict[str, Any]
    passed: list[tuple[int, str]]  # places of the arguments that are passed, and their types

    @property
    def key(self) -> str:
        """Equal for equal binaries."""
        return repr((self.function.__name__, *self[1:]))


def _task(module: ModuleType, entry: str) -> _Task:
    """Parse an entry and specialise its function; raises CompileError if they do not fit."""
    function, types, values = _called(module, entry)
    parameters = function.params
    constants = {
        parameter.name: values[parameter.name] for parameter in parameters if parameter.name in values
    }
    options = {name: value for name, value in values.items() if name in _OPTIONS or name not in constants}
    _require_fit(function, types, constants, options)
    arguments = [parameter for parameter in parameters if not parameter.is_constexpr]
    defaults = {parameter.name: parameter.default for parameter in parameters if parameter.is_constexpr}
    constants = defaults | typed(function, constants)
    kinds = dict.fromkeys(constants, "constexpr")
    attributes: dict[tuple[int], list[list[Any]]] = {}
    passed = []
    places = count()
    for parameter, given in zip(arguments, types, strict=True):
        if given == NO_ARRAY:
            kinds[parameter.name], constants[parameter.name] = "constexpr", None
            continue
        place = next(places)
        kind, sign, value = given.partition("=")
        kind, is_aligned, _ = kind.partition(_ALIGNED)
        if sign and not parameter.do_not_specialize:
            kinds[parameter.name], constants[parameter.name] = "constexpr", int(value)
            continue
        kinds[parameter.name] = kind.replace("*", "*k") if parameter.is_const else kind
        passed.append((place, kind))
        if is_aligned and not (parameter.do_not_specialize or parameter.do_not_specialize_on_alignment):
            attributes[(parameter.num,)] = [["tt.divisibility", 16]]
    signature = {parameter.name: kinds[parameter.name] for parameter in parameters}
    return _Task(function, signature, constants, attributes, options, passed)


def _called(module: ModuleType, entry: str) -> tuple[Any, Sequence[str], Mapping[str, Any]]:
    """The function of an entry, the types of its arguments, and the values that have names."""
    try:
        called, types, values = entry_signature(entry)
    except (SyntaxError, ValueError):
        raise CompileError(
            f"{entry}: not a kernel in Triton with the types of its arguments and its constants"
        ) from None
    function = getattr(module, called, None)
    if not isinstance(function, triton.JITFunction):
        raise CompileError(f"the source has no kernel {called!r} under @triton.jit")
    return function, types, values


def _require_fit(
    function: Any, types: Sequence[str], constants: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Raise CompileError if a function does not take these arguments, constants and options."""
    called = function.__name__
    for name, value in options.items():  # others name files, or options of programs
        if name not in _OPTIONS or type(value) is not int:
            known = ", ".join(_OPTIONS)
            raise CompileError(
                f"{name} is neither a parameter of {called} nor a numeric option of Triton: {known}"
            )
    needed = (
        parameter.name
        for parameter in function.params
        if parameter.is_constexpr and not parameter.has_default
    )
    if unset := [name for name in needed if name not in constants]:
        raise CompileError(f"no value for {', '.join(unset)}, which {called} needs as a constant")
    taken = [parameter.name for parameter in function.params if not parameter.is_constexpr]
    if len(taken) != len(types):
        names = ", ".join(taken)
        raise CompileError(f"{called} takes ({names}); the launch plan passes {len(types)} arguments")


def _kernel(
    facts: Mapping[str, Any], sizes: list[int], cubin: bytes, passed: Sequence[tuple[int, str]]
) -> TritonBinary:
    """The data for a launch; raises CompileError if the arguments do not fit the kernel's parameters."""
    expected = [8 if kind.startswith("*") else _BYTES.get(kind, 0) for _, kind in passed]
    hidden = sizes[len(expected) :]
    if sizes[: len(expected)] != expected or any(size != 8 for size in hidden):
        raise CompileError(
            f"the kernel's parameters have {sizes} bytes, the space's arguments {expected}; "
            "give the arguments the kernel's dtypes"
        )
    if facts.get("profile_scratch_size"):
        raise CompileError("the kernel asks for memory for a profiler, which autotune does not provide")
    return TritonBinary(
        symbol=facts["name"],
        warps=facts["num_warps"],
        shared_bytes=facts["shared"],
        cluster=facts["num_ctas"],
        passed=tuple(place for place, _ in passed),
        hidden=len(hidden),
        cubin=cubin,
        scratch_bytes=facts.get("global_scratch_size") or 0,
    )


def _parameter_bytes(ptx: str) -> list[int]:
    match = _PARAMETERS.search(ptx)
    texts = match[1].split(",\n") if match and match[1].strip() else []
    declared = [_PARAMETER_TYPE.search(text) for text in texts]
    return [int(match[1]) // 8 * int((match[2] or "[1]")[1:-1]) if match else 0 for match in declared]


def _message(error: BaseException, kernel: Any) -> str:
    """What Triton raised, and where: lines are counted from the function's `def`, as in the user's file."""
    raised = [error]
    while (cause := raised[-1].__cause__) is not None:
        raised.append(cause)
    last = raised[-1]
    match last:
        case CompileTimeAssertionFailure():
            reason = f"the assertion fails{': ' * bool(last.error_message)}{last.error_message}"
        case CompilationError() if last.error_message:
            reason = last.error_message
        case _:
            reason = f"{type(last).__name__}: {last}"
    if assembler := _ASSEMBLER.search(reason):
        needs_other = re.search(r"not supported|requires", assembler[1])
        reason = f"ptxas: {assembler[1]}{'; a device that has it is needed' if needs_other else ''}"
    reason += of_older_versions(reason)
    functions = kernel.fn.__globals__.items()
    own = {one.src: name for name, one in functions if isinstance(one, triton.JITFunction)}
    for one in reversed(raised):  # the innermost place that is not in Triton's own library
        if isinstance(one, CompilationError) and one.src in own and (line := getattr(one.node, "lineno", 0)):
            text = one.src.splitlines()[line - 1].strip()
            return f"{own[one.src]}, line {line} from its def, `{text}`: {reason}"
    return reason
