"""What keeps a client to itself: its own home, nothing of the user's settings, no way out of the machine."""

import contextlib
import os
import socket
import tempfile

# Enough to find programs and to write text; everything else is a setting of somebody.
KEPT = ("PATH", "LANG", "TMPDIR")


@contextlib.contextmanager
def homes(parent):
    """Fresh directories: a home, and one to work in."""
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix="home-") as home:
        work = os.path.join(home, "project")
        os.mkdir(work)
        yield home, work


@contextlib.contextmanager
def no_way_out():
    """The address of a port that refuses: bound, so that nobody else gets it, and never listened on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield "http://{}:{}".format(*held.getsockname())


def environment(home, refusing):
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    proxies = {name: refusing for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")}
    direct = "127.0.0.1,localhost"
    return {
        "LANG": "C.UTF-8",
        **kept,
        **proxies,
        "NO_PROXY": direct,
        "no_proxy": direct,
        "HOME": home,
        "DO_NOT_TRACK": "1",
        "OTEL_SDK_DISABLED": "true",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        "CI": "1",
    }
