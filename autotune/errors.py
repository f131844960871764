"""Every exception that autotune raises on purpose.

An `AutotuneError` reaches the user: its message says what went wrong and what to do. The other errors are
internal: each is caught where its meaning for a configuration is known.
"""

from enum import Enum


class AutotuneError(Exception):
    """Base class of the errors that autotune raises on purpose."""


class InputError(AutotuneError):
    """The input is wrong (exit code 2); the message says in one line where, and what was expected."""


class SpaceError(InputError):
    """A space file is wrong; the message starts with `file:line:`."""


class Untrusted(InputError):
    """A result of a cache leads to code that the program has not named; the message says how it can."""


class KernelUnread(InputError):
    """A source has a kernel that cannot be read, or that its conditions leave out."""

    def __init__(self, file: str, line: int, why: str = "", helps: str = "") -> None:
        """`line` is where the kernel begins, `why` why a compiler refuses the source, `helps` the remedy."""
        self.file, self.line = file, line
        mend = f": {why}{helps or '; mend that, or give what it needs with --define or --include'}"
        move = (
            ", or no values of the source's macros select it; move it and what it uses to a file of its own"
        )
        super().__init__(f"{file}:{line}: the kernel that begins here cannot be read{mend if why else move}")


class ExpressionError(InputError):
    """An expression does not parse, names something unknown or cannot be evaluated.

    `place` is where the space file has it, such as `launch[0].grid[1]`; empty where that is not known.
    """

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.message = message
        self.place = place

    def at(self, place: str) -> "ExpressionError":
        """The same error of an expression that is inside of a place."""
        return ExpressionError(self.message, f"{place}.{self.place}" if self.place else place)


class JournalError(InputError):
    """A journal belongs to another search, or is damaged."""


class NoMemory(InputError):
    """The arrays of the problem do not fit in the memory of the device or of the host."""


class Forked(InputError):
    """The process was forked from one that had used a driver, which does not work in it."""

    def __init__(self, driver: str) -> None:
        super().__init__(
            f"{driver} was used before this process was forked, and does not survive a fork: call kernels "
            "in the forked processes only, or start them with multiprocessing's spawn or forkserver"
        )


class MissingExtra(AutotuneError):
    """An optional package is not installed, or is broken; the message says what to install."""

    def __init__(self, package: str, extra: str | None = None, why: str = "is not installed") -> None:
        how = (
            f"pip install {package}" if extra is None else f"pip install '.[{extra}]' in a clone of autotune"
        )
        super().__init__(f"{package} {why}; it comes with: {how}")


class SetupError(AutotuneError):
    """Kernel, reference or device is broken: no configuration could succeed."""


class BrokenReference(SetupError):
    """A function of a reference file raised, or returned what does not fit; the message has file and line."""


class CannotSet(SetupError):
    """Clock or power limit of a device cannot be changed by this process."""


class WriteError(AutotuneError):
    """A file or folder cannot be written: permissions, or a full disk."""


class CacheError(AutotuneError):
    """A cache file cannot be read or written, is damaged or of an unknown version."""


class Overtaken(CacheError):
    """Another process stored a result for the same problem since it was last read; never reaches a user."""


class NoConfig(AutotuneError, LookupError):
    """The cache holds no configuration that may be served; the message lists what it holds."""


class NoMoreTrials(Exception):
    """Raised once the budget is used up, or nothing is under way to wait for; a searcher lets it pass."""


class Blame(Enum):
    """A possible cause of a failure."""

    CONFIGURATION = "configuration"
    PROCESS = "process"  # an earlier run in the same process: repeat it in a fresh one
    MACHINE = "machine"  # a kill, no memory, load: try again, and once more in the next search


class ChildFailed(Exception):
    """A call to a child process gave no answer."""

    def __init__(self, message: str, blame: Blame = Blame.PROCESS) -> None:
        super().__init__(message)
        self.blame = blame


class ChildDied(ChildFailed):
    """The child ended without an answer; the message has the signal and the end of its output."""


class ChildTimeout(ChildFailed):
    """No answer came in time; the child's process group was killed."""


class ChildRaised(ChildFailed):
    """The function raised in the child; `kind` is the name of the exception's class."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        blame = Blame.MACHINE if kind == MemoryError.__name__ else Blame.PROCESS
        super().__init__(f"{kind}: {message}" if message else kind, blame)
        self.kind = kind
        self.message = message
        self.trace = trace


class CompileError(Exception):
    """The compiler refused the source; the message is its log."""


class DeviceError(Exception):
    """The device, or its driver, reported an error."""


class LaunchError(DeviceError):
    """The device refused the binary or the launch and remains usable."""


class ImpossibleTime(LaunchError):
    """The device reports a time that no run can take."""


class OutsideArrays(LaunchError):
    """The kernel reads outside of its arrays."""


class OutOfMemory(LaunchError):
    """The device has too little free memory for an allocation."""


class DeviceLost(DeviceError):
    """The device reported an error that outlives the launch: the process must be replaced."""
