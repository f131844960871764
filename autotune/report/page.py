"""A page as one HTML file that needs nothing else: template, style, script and data in one text.

The page's own policy forbids it to load anything. Names and details of a journal reach it as JSON only, and
the script writes them as text, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from autotune.core.version import __version__
from autotune.errors import InputError
from autotune.interop.files import read_text, write_text

_SCRIPTS = (  # in the order that they are put together; each uses those before it
    *("elements", "search", "scales", "chart", "drawing", "result", "timeline", "progress", "space"),
    *("importance", "resources", "beside", "devices", "trials", "folder", "constraints", "main"),
)
_MAX_LETTERS = 2_000  # of a text
_GENERATOR = '<meta name="generator" content="autotune '  # as in report.html
_HEAD = 2_000  # letters of a report in which that stands


def page_html(title: str, data: Mapping[str, Any]) -> str:
    """The page of some data under a title."""
    style, script = _asset("report.css"), _script()
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data: blob:"
        + ("; connect-src 'self'" if "live" in data else "")
    )
    return Template(_asset("report.html")).substitute(
        policy=escape(policy),
        title=escape(_cut(title)).encode("ascii", "xmlcharrefreplace").decode(),
        version=escape(__version__),
        style=style,
        data=embedded(data),
        script=script,
    )


def framed(html: str) -> str:
    """A page as an element of a notebook, whose content it cannot read."""
    style = "width: 100%; height: 46rem; border: 0"
    return (
        f'<iframe title="Report of the search" sandbox="allow-scripts allow-downloads" style="{style}" '
        f'srcdoc="{escape(html)}"></iframe>'
    )


def write_page(path: Path, html: str) -> str:
    """Write a page and say what was done: "wrote" or "replaced".

    Raises:
        InputError: The file exists and is no page of autotune.
        WriteError: It cannot be written.
    """
    is_there = path.is_file()
    if is_there and (text := read_text(path)) and _GENERATOR not in text[:_HEAD]:
        raise InputError(f"{path}: exists and is not a report; choose another file with -o")
    write_text(path, html)
    return f"{'replaced' if is_there else 'wrote'} {path}"


def embedded(data: Mapping[str, Any]) -> str:
    """JSON that is safe inside a script element: no `<`, and nothing but ASCII."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def cut(data: Mapping[str, Any]) -> dict[str, Any]:
    """Data with the beginning of each text, and how much is left out: files may have texts of any length."""
    return {_cut(name): _cut(value) for name, value in data.items()}


def _cut(data: Any) -> Any:
    if isinstance(data, str):
        left = len(data) - _MAX_LETTERS
        return data if left <= 0 else f"{data[:_MAX_LETTERS]}… ({left:,} more characters)"
    if isinstance(data, Mapping):
        return cut(data)
    return [_cut(value) for value in data] if isinstance(data, list | tuple) else data


def short(value: float | None) -> float | int | None:
    """Six significant digits: more are noise, and make the page larger."""
    if value is None:
        return None
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded


def _script() -> str:
    """All scripts in one block, whose names no element of the page hides."""
    texts = "\n".join(_asset(f"{name}.js") for name in _SCRIPTS)
    return f'"use strict";\n{{\n{texts}}}\n'


def _asset(name: str) -> str:
    return (files("autotune.report") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
