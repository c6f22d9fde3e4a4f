"""Benchmarks of cost and speed: one command each, which prints a table."""
