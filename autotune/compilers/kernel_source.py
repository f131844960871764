"""Read kernel sources: resolve quoted includes, prepend macros, hash the text.

Compilers get one text, so that a kernel in any folder finds `portable.h` without an include path. `#line`
directives make error messages point at the user's file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune.core.packaged import packaged_folder
from autotune.core.records import Value
from autotune.errors import InputError

_HALF = re.compile(r"\bhalf\s*[*)]|\bhalf\s+\w+\s*[=;,)\[]")  # the type, not a word in a comment
_TEMPLATE = re.compile(r"\btemplate\s*<([^{};()]*?)>")
_DECLARED = re.compile(r"\w\s+(\w+)\s*(?:=[^,]*)?(?:,|$)")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"[^\n]*$', re.MULTILINE)


@dataclass(frozen=True)
class SourceText:
    """A source file with its quoted includes resolved; `sha256` is of that text."""

    path: Path
    text: str
    sha256: str


def packaged(folder: str) -> Path:
    """A data folder that comes with autotune: kernels, spaces or cache."""
    return Path(packaged_folder(folder))


def include_dir() -> str:
    """The folder of `portable.h`, for the include path of a production build."""
    return str(packaged("kernels"))


def read_source(path: Path) -> SourceText:
    """Read a kernel file; raises InputError if it or one of its includes cannot be read."""
    text = _resolve(path, set())
    return SourceText(path, text, hashlib.sha256(text.encode()).hexdigest())


def _resolve(path: Path, included: set[Path]) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; expected a kernel source") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not a text file; expected a kernel source in UTF-8") from None
    if path.suffix == ".py":
        return text
    included.add(path.resolve())

    def replace(match: re.Match[str]) -> str:
        target = _find(match[1], path)
        line = text.count("\n", 0, match.start()) + 2
        body = "" if target.resolve() in included else _resolve(target, included)
        return f'{body}\n#line {line} "{path.name}"'

    return f'#line 1 "{path.name}"\n' + _INCLUDE.sub(replace, text)


def _find(name: str, including: Path) -> Path:
    for folder in (including.parent, packaged("kernels")):
        if (folder / name).is_file():
            return folder / name
    raise InputError(f'{including}: #include "{name}" is neither in its folder nor in {packaged("kernels")}')


def render(source: SourceText, macros: Mapping[str, Value]) -> str:
    """The text a compiler gets: a definition per macro, the type `half` where it is used, then the source.

    A name that the source gives to a parameter of a template is no macro: the launch plan's entry passes it.
    """
    if source.path.suffix == ".py":
        head = "".join(f"{name} = {_python(value, macros)}\n" for name, value in macros.items())
    else:
        lists = _TEMPLATE.findall(source.text)
        declared = {name for parameters in lists for name in _DECLARED.findall(parameters)}
        head = "".join(f"#define {name} {value}\n" for name, value in macros.items() if name not in declared)
        if "cuda_fp16" not in source.text and (macros.get("DTYPE") == "half" or _HALF.search(source.text)):
            head += _resolve(packaged("kernels") / "half.h", set()) + "\n"
    return head + source.text


def _python(value: Value, macros: Mapping[str, Value]) -> str:
    return str(value) if value in macros else repr(value)
