"""Send requests to wallets and webhook endpoints, to public addresses only."""
