"""Operator commands for a stage of samconfig.toml: `make deploy`, `preflight`, `remove`, etc."""
