"""A refund: its record, its transitions, and what its wallets' answers prove."""
