"""What the payment engine moves: the machine, a payment under way, the budget's grant."""
