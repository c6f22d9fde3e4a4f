"""The customer's hosted pages: wallet submission, grant callback, confirmation."""

import checkout  # noqa: F401 - before all others, because it prepares a cold start
