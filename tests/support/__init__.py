"""Share what tests need; tests/README.md names the three entry points: flows, doors, processes."""
