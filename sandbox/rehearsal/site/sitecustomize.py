"""For the rehearsal's emulator and the functions that it runs, found by their PYTHONPATH: TLS also
trusts the authority that REHEARSAL_CA names, as it would on a machine with an authority of its own.

The product's code and settings know nothing of it, and the artifacts stay as they were built.
"""

from __future__ import annotations

import os
import ssl
from typing import Any

_create = ssl.create_default_context


def _trusting(*args: Any, **options: Any) -> ssl.SSLContext:
    context = _create(*args, **options)
    context.load_verify_locations(os.environ["REHEARSAL_CA"])
    return context


ssl.create_default_context = _trusting
