"""Ways to send a request: `public.PublicTransport`, the guarded default, and `httpx_client`."""
