"""Rehearsal: make TLS in the emulator and its functions also trust the CA of REHEARSAL_CA.

Python imports this file at startup, through PYTHONPATH. The product's code and settings know
nothing of it, and the artifacts stay as they were built.
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
