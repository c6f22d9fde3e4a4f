"""Use cases of payment links: manage them, and begin purchases."""
