"""pretix's own settings for tests, with a server at an address and a database in a file."""

import socket

from pretix.testutils.settings import *  # noqa: F403


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


PRETIX_PORT = _free_port()
SITE_URL = f"http://localhost:{PRETIX_PORT}"
# The server's threads have connections of their own, as in a real installation. pretix.cfg may name
# a PostgreSQL in place of this file.
if "sqlite" in DATABASES["default"]["ENGINE"]:  # noqa: F405
    DATABASES["default"]["TEST"] = {"NAME": f"{DATA_DIR}/test.sqlite3"}  # noqa: F405
    DATABASES["default"]["OPTIONS"] = {  # noqa: F405
        "timeout": 60,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA synchronous=OFF",  # it need not outlive the machine
    }
DEBUG = False
