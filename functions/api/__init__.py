"""The merchant's REST API and the health check. Speaks to no wallet and holds no secret."""
