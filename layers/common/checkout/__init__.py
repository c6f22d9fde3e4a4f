"""Checkout Sessions: a self-hosted checkout over Open Payments.

To learn the code, read `domain/session/transitions.py` first, then `flows/`.
"""

import gc
import os
import sys
from typing import Any

# The following lines shorten cold starts in Lambda. Other processes skip them.
if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # The garbage collector is off while a function is loaded, because the loaded objects stay in
    # memory anyway. This saves a tenth of a cold start. `wiring.build_in_lambda` switches the
    # collector on again.
    gc.disable()
    # If PyOpenSSL is installed (by py_webauthn), botocore loads it in every function, only to
    # import a class of the standard library. Loading PyOpenSSL takes 0.1 s, so the import is
    # prevented.
    modules: dict[str, Any] = sys.modules
    modules.setdefault("urllib3.contrib.pyopenssl", None)
