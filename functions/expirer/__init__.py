"""Background work without a public URL: the scheduled sweep, and clean-up at wallets."""

import checkout  # noqa: F401 - before all others, because it prepares a cold start
