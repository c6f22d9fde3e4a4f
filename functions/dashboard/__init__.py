"""The merchant's pages: transactions found, understood and exported.

Asks a wallet only for a new merchant, who is told what is connected.
"""

import checkout  # noqa: F401 - before all others, see there
