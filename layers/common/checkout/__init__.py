"""Checkout Sessions: a self-hosted checkout over Open Payments.

Start at `domain/transitions.py`, then read `flows/`.
"""

import gc
import os
import sys
from typing import Any

# What a function loads stays, so in Lambda the garbage collector does not look through it while
# more is loaded, which is a tenth of a cold start. `wiring.build_in_lambda` switches it on again.
if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    gc.disable()

# Where py_webauthn has installed PyOpenSSL, botocore loads it in every function, only to take from
# it a class of the standard library. That is 0.1 s at each cold start, so it is kept from it here.
_modules: dict[str, Any] = sys.modules
_modules.setdefault("urllib3.contrib.pyopenssl", None)
