"""Show the journals and caches of a folder in a browser, live while a search runs, until Ctrl-C.

The pages are those of `autotune report`, for one search or several side by side. They are served to this
machine only, and cannot change anything.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit

EXAMPLE = "autotune explore ."
_PORT = 8321


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        type=Path,
        default=Path(),
        help="the folder whose journals and caches are shown, with the folders in it (default: the current)",
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=opt.at_least(0),
        default=_PORT,
        help="where to listen; 0 takes any free port (default %(default)s)",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen on (default %(default)s, which only this machine reaches); anybody who "
        "reaches another one can read the folder's results",
    )


def run(parsed: argparse.Namespace) -> None:
    """Serve until Ctrl-C."""
    from autotune.report.folder import ExploredFolder
    from autotune.report.server import ExploreServer

    folder = ExploredFolder(parsed.folder)
    with ExploreServer(folder, parsed.host, parsed.port) as server, suppress(KeyboardInterrupt):
        found = len(folder.sources())
        emit(f"{server.url} shows {found:,} searches and kernels of {folder.root}; Ctrl-C ends it")
        sys.stdout.flush()
        server.serve_forever()
