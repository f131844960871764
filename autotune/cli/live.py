"""Shows the journals and caches of a folder in a browser, live while a search runs, until Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.errors import InputError

_PORT = 8321


def add_live(parser: argparse.ArgumentParser) -> None:
    """Add the options of the live pages."""
    group = parser.add_argument_group("with --live")
    group.add_argument(
        "--live",
        action="store_true",
        help="serve the pages of a folder (default: the current) and of the folders in it",
    )
    group.add_argument(
        "--port",
        metavar="N",
        type=opt.at_least(0),
        default=_PORT,
        help="where to listen; 0 takes any free port (default %(default)s)",
    )
    group.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen on (default %(default)s, which only this machine reaches); anybody who "
        "reaches another one can read the folder's results",
    )


def show_live(parsed: argparse.Namespace) -> None:
    """Serve until Ctrl-C; raises InputError for more than one folder."""
    from autotune.report.folder import ExploredFolder
    from autotune.report.server import ExploreServer

    if len(parsed.names) > 1:
        raise InputError("--live shows one folder, with the folders in it; name one")
    folder = ExploredFolder(Path(*parsed.names))
    with ExploreServer(folder, parsed.host, parsed.port) as server, suppress(KeyboardInterrupt):
        found = len(folder.sources())
        emit(f"{server.url} shows {found:,} searches and kernels of {folder.root}; Ctrl-C ends it")
        sys.stdout.flush()
        server.serve_forever()
