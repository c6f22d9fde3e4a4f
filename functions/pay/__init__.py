"""The customer's hosted pages: wallet submission, grant callback, confirmation."""

import checkout  # noqa: F401 - imported first, to shorten cold starts
