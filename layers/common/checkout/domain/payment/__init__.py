"""The records of the payment engine: the state machine, a payment in flight, the refund budget."""
