"""The objects of `/v1`, the API for Stripe's libraries."""
