"""The merchant's pages, on which the merchant finds, understands and exports transactions.

The pages of transactions read no wallet. Exception: for a new merchant, the list reads the
merchant's wallet, to show which wallet is connected.
"""

import checkout  # noqa: F401 - before all others, because it prepares a cold start
