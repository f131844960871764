"""The files of the user's that a Python file imports, found without running it."""

import pytest

from autotune.core.own_modules import own_modules

FILES = {
    "plain.py": "import deep\n",
    "deep.py": "VALUE = 2\n",
    "package/__init__.py": "from . import inner\n",
    "package/inner.py": "from ..package.other import VALUE\n",
    "package/other.py": "VALUE = 2\n",
    "package/unused.py": "VALUE = 2\n",
    "package/folder/deep.py": "VALUE = 2\n",  # of a folder without __init__.py
    "loop.py": "import back\n",
    "back.py": "import loop\n",
}
IMPORTS = {
    "import plain": {"plain.py", "deep.py"},
    "from plain import deep as other": {"plain.py", "deep.py"},
    "def reference(i, s):\n    import deep": {"deep.py"},
    "try:\n    import deep\nexcept ImportError:\n    deep = None": {"deep.py"},
    "from package import *": {"package/__init__.py", "package/inner.py", "package/other.py"},
    "import package.unused": {*FILES} & {f"package/{n}.py" for n in ("__init__", "inner", "other", "unused")},
    "from package import unused": {f"package/{n}.py" for n in ("__init__", "inner", "other", "unused")},
    "from package.folder import deep": {
        f"package/{name}.py" for name in ("__init__", "inner", "other", "folder/deep")
    },
    "import loop": {"loop.py", "back.py"},
    "import numpy as np, os.path, json": set(),
    "import autotune.devices": set(),
    "import not_there": set(),
    "# import deep": set(),
    "import (": set(),
}
UNKNOWN = {
    "import importlib\nimportlib.import_module('deep')": "reference.py: import importlib",
    "from importlib import import_module": "reference.py: import importlib.import_module",
    "a = __import__('deep')": "reference.py:1: __import__",
    "exec(open('deep.py').read())": "reference.py:1: exec",
    "import sys\nsys.path.append('lib')\nimport not_there": "reference.py: import not_there",
}


@pytest.fixture
def path(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "reference.py"


@pytest.mark.parametrize("text", IMPORTS)
def test_own_modules_are_followed_from_file_to_file(path, text):
    found = own_modules(text, path)
    assert {str(file.relative_to(path.parent)) for file in found.files} == IMPORTS[text]
    assert not found.hidden and bool(found.digest) == bool(IMPORTS[text])


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_only_the_running_program_knows_is_told(path, text):
    assert own_modules(text, path).hidden == UNKNOWN[text]


def test_the_digest_changes_with_a_module_of_a_module(path):
    before = own_modules("import plain", path).digest
    assert own_modules("import plain", path).digest == before
    (path.parent / "deep.py").write_text("VALUE = 3\n")
    assert own_modules("import plain", path).digest != before


def test_a_module_on_python_s_path_counts(path, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("other")
    (other / "elsewhere.py").write_text("")
    monkeypatch.syspath_prepend(other)
    assert own_modules("import elsewhere", path).files == (other / "elsewhere.py",)
