"""``lrm workbench``: plan a release in the browser."""

from typing import TYPE_CHECKING

import click

from lrm.cli.options import json_option
from lrm.cli.terminal import echo, print_json
from lrm.errors import UsageError

if TYPE_CHECKING:
    from lrm.workbench.server import Server

PORT = 8417
"""The port that is tried first; another one is taken if it is in use."""


@click.command()
@click.argument("folder", default=".")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help=f"Port to listen on ({PORT}, or a free one); 0 for a free one.",
)
@click.option(
    "--ledger",
    envvar="LRM_LEDGER",
    metavar="FILE|URL",
    default="budget.sqlite",
    show_default=True,
    help="Ledger that the page offers; also from LRM_LEDGER.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@json_option
def workbench(
    folder: str, ledger: str, port: int | None, *, no_browser: bool, as_json: bool
) -> None:
    r"""Serve a local page for the files of FOLDER (the current folder by default).

    Write the domain and the questions, see the error of every answer while you type, give the
    table its budget, release, and ask further questions. The files of the folder are all that
    the page knows, so every step can be continued on the command line; the page shows the command.
    The printed address signs in one browser. Needs no network, and listens on the loopback
    address alone: for a remote machine, forward the port with ssh -L. Ctrl-C ends it.

    \b
    Example:
      lrm workbench
      lrm workbench survey --port 9000 --no-browser
    """
    import os
    import sys
    from pathlib import Path

    place = Path(folder)
    if not place.is_dir():
        raise UsageError(f"there is no folder {folder}; create it first (mkdir {folder})")
    os.chdir(place)  # so that a table or a ledger is found as on the command line
    server = _listening(port, ledger)
    if as_json:
        print_json({"folder": str(Path.cwd()), "address": server.address})
    else:
        echo(f"workbench of {Path.cwd()}\n  {server.address}\nCtrl-C ends it")
    sys.stdout.flush()
    server.warm_up()
    if not no_browser:
        _open(server.address)
    try:
        server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        pass  # the way to end it, and no failure
    finally:
        server.close_all()


def _listening(port: int | None, ledger: str) -> "Server":
    from pathlib import Path

    from lrm.workbench.server import Server

    for tried in (PORT, 0) if port is None else (port,):
        try:
            return Server(Path.cwd(), tried, ledger)
        except OSError as reason:
            problem = reason.strerror or type(reason).__name__
    raise UsageError(f"cannot listen on port {tried}: {problem}; choose another --port")


def _open(address: str) -> None:
    """Open a browser where there is a screen: one in the terminal would be in the way."""
    import os
    import sys
    import webbrowser

    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(address)
