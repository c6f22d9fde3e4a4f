"""Background work: the scheduled sweep, and clean-up at wallets. It has no public URL."""

import checkout  # noqa: F401 - before all others, see there
