"""The merchant's REST API and health check. This package calls no wallet and holds no secret."""

import checkout  # noqa: F401 - imported first, to shorten cold starts
