"""The merchant's pages: find, understand and export transactions.

Wallets are read only for a new merchant, to show what is connected.
"""

import checkout  # noqa: F401 - before all others, see there
