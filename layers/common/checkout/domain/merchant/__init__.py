"""A merchant, its people and keys, and what they may do."""
