"""The merchant's REST API and the health check. It calls no wallet and holds no secret."""

import checkout  # noqa: F401 - before all others, see there
