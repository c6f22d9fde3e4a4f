"""Checkout Sessions: a self-hosted checkout over Open Payments.

Start at `domain/transitions.py`, then read `flows/`.
"""

import sys
from typing import Any

# Where py_webauthn has installed PyOpenSSL, botocore loads it in every function, only to take from
# it a class of the standard library. That is 0.1 s at each cold start, so it is kept from it here.
_modules: dict[str, Any] = sys.modules
_modules.setdefault("urllib3.contrib.pyopenssl", None)
