"""A merchant, its people and keys, and their rights."""
