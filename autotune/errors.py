"""Every exception that autotune raises on purpose.

AutotuneError            something went wrong; the message says what and what to do
|-- InputError           the user's input is at fault (exit code 2)
|   |-- SpaceError       a space file: names the file, the line and what was expected
|   |-- ExpressionError  an expression in a space or cache file
|   |-- JournalError     a journal that belongs to another search, or is damaged
|   `-- NoMemory         the problem's arrays do not fit in the device's memory
|-- MissingExtra         an optional package is not installed; names the extra
|-- SetupError           kernel, reference or device is broken before any search can start
|-- WriteError           a file or folder cannot be written: permissions, or a full disk
|-- CacheError           a cache file is damaged or of an unknown version
|   `-- Overtaken        control flow: another search stored first; never reaches a user
|-- NoConfig             the loader has nothing that fits; lists what exists
`-- BudgetSpent          control flow: ends a searcher's loop, never reaches a user

Below the surface, each caught where it can be told what it means for a configuration:

CompileError             the compiler refused the source
LaunchError              the device refused the binary or the launch and remains usable
`-- OutOfMemory          the device has no memory left
DeviceLost               an error that outlives the launch: the process must be replaced
ChildFailed              a call to a child process has no answer
|-- ChildDied            the child ended
|-- ChildTimeout         no answer came in time
`-- ChildRaised          the function raised in the child
"""


class AutotuneError(Exception):
    """Base of every error autotune raises on purpose."""


class InputError(AutotuneError):
    """What the user gave is wrong; one line says where and what was expected."""


class SpaceError(InputError):
    """A space file is wrong; the message starts with `file:line:`."""


class ExpressionError(InputError):
    """An expression does not parse, names something unknown or cannot be evaluated."""


class JournalError(InputError):
    """A journal cannot be continued by this search."""


class NoMemory(InputError):
    """The arrays of the problem do not fit in the device's memory."""


class MissingExtra(AutotuneError):
    """A package is not installed; says what to install."""

    def __init__(self, package: str, extra: str | None = None) -> None:
        wanted = package if extra is None else f"'autotune-kernels[{extra}]'"
        super().__init__(f"{package} is not installed; it comes with: pip install {wanted}")


class SetupError(AutotuneError):
    """Kernel, reference or device is broken: no configuration could succeed."""


class WriteError(AutotuneError):
    """A file or folder cannot be written."""


class CacheError(AutotuneError):
    """A cache file cannot be read or written."""


class Overtaken(CacheError):
    """Another process stored a result for the same problem since it was last read."""


class NoConfig(AutotuneError, LookupError):
    """The cache holds no configuration that may be served."""


class BudgetSpent(Exception):
    """The evaluator's answer once the budget is used up; a searcher lets it pass through."""


class ChildFailed(Exception):
    """A call has no answer; `by_machine` says that the machine may be the cause, not what was called."""

    def __init__(self, message: str, *, by_machine: bool = False) -> None:
        super().__init__(message)
        self.by_machine = by_machine


class ChildDied(ChildFailed):
    """The child ended without an answer; the text says by which signal, and its last words."""


class ChildTimeout(ChildFailed):
    """No answer came in time; the child's process group was killed."""


class ChildRaised(ChildFailed):
    """The function raised in the child; `kind` is the name of the exception's class."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind, by_machine=kind == MemoryError.__name__)
        self.kind = kind
        self.trace = trace


class CompileError(Exception):
    """The compiler refused the source; the text is its log."""


class LaunchError(Exception):
    """The device refused the binary or the launch and remains usable."""


class OutOfMemory(LaunchError):
    """The device has no memory left for what was asked."""


class DeviceLost(Exception):
    """The device reported an error that outlives the launch: the process must be replaced."""
