"""Implementations of the ports: DynamoDB, the vault, the queues, outbound HTTP, the clock."""
