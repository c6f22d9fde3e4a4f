"""Statements, daily totals and search."""
