"""Background work without a public URL: the scheduled sweep, and clean-up at wallets."""

import checkout  # noqa: F401 - imported first, to shorten cold starts
