"""Act for a merchant: setup, sign-in, API keys, settings, search and export."""
