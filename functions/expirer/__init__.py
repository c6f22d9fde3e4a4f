"""Background work: the scheduled sweep, and clean-up at wallets. It has no public URL."""
