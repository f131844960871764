"""A pool of compiler processes that compile sources to binaries or failures, ahead of the device.

Each thread of the pool uses one child process, so a compiler that crashes or hangs costs only that process.
The kernels of one Triton configuration are compiled in several processes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any

from autotune.compilers.base import TRITON_MODULE, Compiler, driver_compiler, triton_name
from autotune.compilers.binary_cache import BinaryCache, CachedCompiler
from autotune.compilers.known_compilers import cuda_compiler, lazy_compiler
from autotune.compilers.triton_binary import joined
from autotune.core.launch_plan import TRITON
from autotune.core.records import DeviceInfo
from autotune.core.trials import Binary, Failure, Status
from autotune.devices import BACKENDS, Address, backend
from autotune.errors import Blame, ChildFailed, ChildRaised, ChildTimeout, CompileError, LaunchError
from autotune.processes.child import Child, kill_all
from autotune.processes.fork_server import preload

if TYPE_CHECKING:  # the children need not load it
    from autotune.evaluation.instance import KernelInstance

Compilation = Binary | Failure


@dataclass(frozen=True)
class CompilerSetting:
    """The compiler of a pool's processes, and how they open it."""

    open: Callable[[], Compiler]  # in each process
    modules: tuple[str, ...] = ()  # that their fork server imports for it
    has_parts: bool = False  # True if each name of a source is compiled on its own


class CompilerPool:
    """Compiles sources in processes, `size` of them, each source within `timeout_s`.

    `setting` opens the compiler. `binaries` is a folder for binaries, which a search needs again in its last
    round, and later searches if they are kept.
    """

    def __init__(
        self,
        setting: CompilerSetting,
        *,
        size: int,
        timeout_s: float,
        binaries: Path | None = None,
        are_kept: bool = True,
    ) -> None:
        self._setting = setting
        self._binaries, self._are_kept = binaries, are_kept
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="compiler")
        self._joining = ThreadPoolExecutor(size, thread_name_prefix="joining")  # these only wait
        self._idle: SimpleQueue[Child | None] = SimpleQueue()  # None: to be started
        self._lock = Lock()  # guards the set of children, which does not change during `close`
        self._closing = False
        self._busy: set[Child] = set()
        self._dropped = 0  # how often compilations were dropped
        self._under_way: dict[tuple[Any, ...], Future[Compilation]] = {}  # by what is compiled
        preload((__name__, *setting.modules))
        self._children = {self._new_child() for _ in range(size)}
        for child in self._children:
            self._idle.put(child)
        self.size = size

    def compile_source(
        self, source: str, options: Sequence[str], names: Sequence[str] = ()
    ) -> Future[Compilation]:
        """Queue one source, with the C++ names to look up; its result may be a Failure.

        The same source is compiled once: while it is under way, another one waits, and then finds its binary.
        """
        unit = source, tuple(options), tuple(names)
        if self._setting.has_parts and len(names) > 1:
            return self._joining.submit(self._compile_parts, *unit)
        if (earlier := self._under_way.get(unit)) is not None:
            return self._joining.submit(self._compile_after, earlier, self._dropped, *unit)
        begun = self._under_way[unit] = self._threads.submit(self._in_child, _compile, *unit)
        begun.add_done_callback(lambda _: self._under_way.pop(unit, None))
        return begun

    def compile(self, instance: KernelInstance) -> Future[Compilation]:
        """Queue the source of a configuration."""
        return self.compile_source(instance.source, instance.options, instance.names)

    def drop(self, compilations: Iterable[Future[Compilation]]) -> None:
        """Cancel compilations, which must be all that have begun, and kill the processes that run some."""
        self._dropped += 1
        for compilation in compilations:
            compilation.cancel()
        kill_all(list(self._busy))

    def close(self) -> None:
        """Cancel what is queued and kill the processes."""
        with self._lock:
            self._closing = True
        for threads in (self._joining, self._threads):
            threads.shutdown(wait=False, cancel_futures=True)
        kill_all(self._children)
        for threads in (self._joining, self._threads):
            threads.shutdown(wait=True)

    def _new_child(self) -> Child:
        return Child(_open, self._setting.open, self._binaries, self._are_kept)

    def _compile_after(self, earlier: Future[Compilation], dropped: int, *unit: Any) -> Compilation:
        with suppress(CancelledError):
            earlier.exception()  # waits
        if dropped != self._dropped:
            raise CancelledError
        again: Future[Compilation] = self._threads.submit(self._in_child, _compile, *unit)
        return again.result()

    def _compile_parts(self, source: str, options: tuple[str, ...], names: tuple[str, ...]) -> Compilation:
        """Compile each name in a process of its own, except for names that get the same code."""
        compiled_as = self._threads.submit(self._in_child, _names_to_compile, source, names).result()
        if isinstance(compiled_as, Failure):
            return compiled_as
        parts = {
            name: self._threads.submit(self._in_child, _compile, source, options, (name,))
            for name in dict.fromkeys(compiled_as)
        }
        compiled = {}
        for name, part in parts.items():
            compilation = part.result()
            if isinstance(compilation, Failure):
                for unneeded in parts.values():
                    unneeded.cancel()
                return compilation
            compiled[name] = compilation
        return joined({name: compiled[other] for name, other in zip(names, compiled_as, strict=True)})

    def _in_child(self, *call: Any) -> Any:
        """Run a function in a child; repeat once in a fresh one if the machine may be at fault."""
        child, dropped = self._idle.get(), self._dropped
        try:
            answer, child = self._call_child(child, *call)
            is_wanted = not self._closing and dropped == self._dropped
            if isinstance(answer, Failure) and answer.by_machine and is_wanted:
                # not in the next idle one: the cause may have killed them all
                answer, child = self._call_child(child, *call)
        finally:
            self._idle.put(child)
        return answer

    def _call_child(self, child: Child | None, *call: Any) -> tuple[Any, Child | None]:
        """Run in a child; return the answer and the next source's child, a fresh one if this one is gone.

        The child is None if the system starts no process; the next attempt tries again.
        """
        try:
            child = child or self._replacement(None)
        except OSError as error:
            return Failure(Status.CRASHED, f"no compiler can be started: {error}", Blame.MACHINE), None
        self._busy.add(child)
        try:
            answer = child.call(*call, timeout_s=self._timeout_s)
        except ChildFailed as error:
            failure = self._failure(error)
            if isinstance(error, ChildRaised) and not failure.by_machine:
                return failure, child
            child.kill()
            with suppress(OSError):
                return failure, self._replacement(child)
            return failure, None
        finally:
            self._busy.discard(child)
        return answer, child

    def _failure(self, error: ChildFailed) -> Failure:
        if isinstance(error, ChildTimeout):
            status, detail = Status.COMPILE_TIMEOUT, f"the compiler took more than {self._timeout_s:g} s"
        elif isinstance(error, ChildRaised):
            status, detail = Status.COMPILE_ERROR, f"the compiler failed: {error}"
        elif error.blame is Blame.MACHINE:
            status, detail = Status.CRASHED, f"the compiler was killed: {error}"
        else:
            status, detail = Status.COMPILE_ERROR, f"the compiler crashed: {error}"
        return Failure(status, detail, error.blame)

    def _replacement(self, child: Child | None) -> Child:
        """Start a child in place of one that is gone; raises OSError if that fails or the pool closes."""
        with self._lock:
            if self._closing:
                raise OSError("the compilers are being closed")
            if child is not None:
                self._children.remove(child)
            fresh = self._new_child()
            self._children.add(fresh)
            return fresh


def compiler_setting(address: Address, device: DeviceInfo, kind: str) -> CompilerSetting:
    """The setting for a device's compiler, of NVIDIA's for `nvrtc`, `nvcc` or `triton`, as `kind` says.

    Raises MissingExtra or SetupError if the compiler is not installed. Does not initialise the CUDA driver.
    """
    if address.is_nvidia:
        compiler_name(address, device, kind)
        return cuda_setting(device.architecture, kind)
    return device_setting(address)


def cuda_setting(architecture: str, kind: str = "") -> CompilerSetting:
    """The setting for an architecture's compiler."""
    opener = partial(cuda_compiler, architecture, kind)
    if kind == TRITON:
        return CompilerSetting(opener, (TRITON_MODULE,), has_parts=True)
    return CompilerSetting(opener, ("autotune.compilers.nvrtc",))


def device_setting(address: Address) -> CompilerSetting:
    """The setting for the compiler of a device of this machine."""
    return CompilerSetting(partial(device_compiler, address), (BACKENDS[address.backend].module,))


def device_compiler(address: Address) -> Compiler:
    """Open the compiler of a device of this machine."""
    return backend(address.backend).open_compiler(address.index)


def compiler_name(address: Address, device: DeviceInfo, kind: str) -> str:
    """The name and version of a device's compiler; raises MissingExtra or SetupError if it is missing."""
    if address.is_nvidia:
        return triton_name() if kind == TRITON else lazy_compiler(device.architecture, kind).name
    return driver_compiler(device)


def _open(open_compiler: Callable[[], Compiler], binaries: Path | None, are_kept: bool) -> Compiler:
    compiler = open_compiler()
    return compiler if binaries is None else CachedCompiler(compiler, BinaryCache(binaries), is_kept=are_kept)


def _names_to_compile(_compiler: Compiler, source: str, names: tuple[str, ...]) -> tuple[str, ...] | Failure:
    """For each name, the first one that gets the same code."""
    from autotune.compilers.triton_compiler import firsts  # takes a second, but for these processes

    try:
        return firsts(source, names)
    except CompileError as error:
        return _compile_failure(error)


def _compile(
    compiler: Compiler, source: str, options: tuple[str, ...], names: tuple[str, ...]
) -> Compilation:
    try:
        return compiler.compile(source, options, names)
    except CompileError as error:
        return _compile_failure(error)
    except LaunchError as error:
        return Failure(Status.LAUNCH_ERROR, str(error))


def _compile_failure(error: CompileError) -> Failure:
    return Failure(Status.COMPILE_ERROR, str(error).strip() or "the compiler gave no reason")
