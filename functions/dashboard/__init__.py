"""The merchant's pages: transactions found, understood and exported. Speaks to no wallet."""
