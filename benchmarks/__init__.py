"""What the product takes, measured: one command each, which prints a table."""
