"""The objects of `/v1`."""
