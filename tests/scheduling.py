"""How the workers of pytest-xdist share the tests: those of pages run in one, which starts one browser.

The marks of `--dist loadgroup` could say so, but pytest-xdist 3.8 does not see them under pytest 9.2.
"""

from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/browser/",)


class Scheduling(LoadScopeScheduling):
    """A folder whose tests belong together comes first; each other test goes to a worker that is free."""

    def _split_scope(self, nodeid: str) -> str:
        """The name of the unit that a test is part of."""
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid)
