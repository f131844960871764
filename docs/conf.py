"""Builds the site from these pages, its contents from README.md, and the reference from the code.

pip install ".[search,docs]" && sphinx-build -W -E docs site
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import autotune
from autotune.cli.parsing import COMMANDS, parser

HERE = Path(__file__).parent
GENERATED = "reference"
PAGES_ABOVE = ("CONTRIBUTING.md", "CHANGELOG.md")  # of the repository's root: the site has copies

project = "autotune"
author = "the autotune developers"
version = release = autotune.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
exclude_patterns = ["plots"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"autotune {version}"
html_copy_source = html_show_sourcelink = False
html_extra_path = ["index.html"]  # sends on to the root document
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_mock_imports = ["torch"]
nitpicky = False


def setup(app: Any) -> None:
    """Generate the reference, then read README.md with its sections as the contents."""
    app.connect("builder-inited", _generate)
    app.connect("source-read", _read)
    app.connect("html-page-context", _level, priority=900)  # after the theme's own


def _generate(_: Any) -> None:
    folder = HERE / GENERATED
    folder.mkdir(exist_ok=True)
    (folder / "command-line.md").write_text("\n".join(_command_line()))
    (folder / "python.md").write_text("\n".join(_python()))
    for page in PAGES_ABOVE:
        text = (HERE.parent / page).read_text().replace("](docs/", "](../")
        (folder / page.lower()).write_text(text.replace("](tests/", "](path:../../tests/"))


def _command_line() -> Iterator[str]:
    """The help of every command, at 80 columns."""
    yield "# The command line\n\nWhat `--help` shows, for each command.\n"
    root = parser()
    (commands,) = (action for action in root._actions if isinstance(action, argparse._SubParsersAction))
    for name in COMMANDS:
        chosen = commands.choices[name]
        chosen.formatter_class = lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=80)
        yield f"## {name}\n\n```text\n{chosen.format_help().rstrip()}\n```\n"


def _python() -> Iterator[str]:
    """The public names of the package, with their docstrings."""
    yield "# The Python API\n\nWhat `import autotune` offers.\n"
    for name in autotune.__all__:
        kind = "autofunction" if not isinstance(getattr(autotune, name), type) else "autoclass"
        members = "   :members:\n" if kind == "autoclass" else ""
        yield f"## {name}\n\n```{{eval-rst}}\n.. {kind}:: autotune.{name}\n{members}```\n"
    for name in ("triton.tuned", "torch.custom_op"):
        yield f"## {name}\n\n```{{eval-rst}}\n.. autofunction:: autotune.{name}\n```\n"


def _read(_: Any, name: str, source: list[str]) -> None:
    """Link to the site's pages; add the contents to an index: a section is a group, a page an entry."""
    for page in PAGES_ABOVE:
        source[0] = source[0].replace(f"](../{page}", f"]({GENERATED}/{page.lower()}")
    text = source[0]
    if name == root_doc:
        text = re.sub(r" These pages are also a site.*?\.(?=\n)", "", text, flags=re.DOTALL)
        text = text.replace("](../README.md)", "](install.md)")
        text = text.replace("\n## Gallery", f"{_ROWS}\n## Gallery")
    elif name != "decisions/README":
        return
    for title, body in re.findall(r"^##? (.+?)\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        pages = re.findall(r"^\| \[[^]]+\]\(([\w/-]+)\.md\)", body, re.M)
        text += "\n".join(["", "```{toctree}", f":caption: {title}", ":hidden:", "", *pages, "```", ""])
    source[0] = text


def _level(_: Any, _name: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Say of which level the headings of the contents are, which screen readers ask for."""
    contents = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = contents.replace('role="heading"', 'role="heading" aria-level="2"')


_ROWS = """| [The command line](reference/command-line.md) | every command and option |
| [The Python API](reference/python.md) | every public function and class |
"""
