"""What stands behind the ports: DynamoDB, the vault, the queue, outbound HTTP, the clock."""
