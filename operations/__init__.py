"""Deploy, check and remove a stage of samconfig.toml; `make deploy`, `preflight` and `remove`."""
