"""Use cases of payment links: manage them, and buy by them."""
