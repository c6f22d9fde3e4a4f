"""Move a checkout session through its life, over the engine in `flows/payment`."""
