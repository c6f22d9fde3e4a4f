"""The merchant's pages, on which the merchant finds, understands and exports transactions.

The pages read a wallet only for a new merchant, to show which wallet is connected.
"""

import checkout  # noqa: F401 - before all others, because it prepares a cold start
