"""Use cases of a merchant: setup, first steps, settings, API keys, suspension and rotation."""
