"""How the workers of pytest-xdist share the tests.

The tests of a file run in one worker, which makes once what they share, such as a browser for all pages.
Files with the most tests begin first. In some folders and files, single tests take long: these come
last, each for whoever is free, and the longest begin.

The marks of `--dist loadgroup` could say so, but pytest-xdist 3.8 does not see them under pytest 9.2.
"""

from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/browser/", "tests/golden/test_outputs.py")
APART = ("tests/contract/", "tests/faults/", "tests/unit/test_docs.py", "tests/unit/test_static_checks.py")
LONGEST = (
    "tests/unit/test_static_checks.py::test_the_tree_is_clean_for[mypy]",
    "tests/unit/test_docs.py::test_the_first_kernel_works_as_its_page_says",
)


class Scheduling(LoadScopeScheduling):
    """Tests that belong together go to one worker; each other test goes to a worker that is free."""

    def _split_scope(self, nodeid: str) -> str:
        """The name of the unit that a test is part of."""
        alone = nodeid if nodeid.startswith(APART) else nodeid.partition("::")[0]
        return next((path for path in TOGETHER if nodeid.startswith(path)), alone)
