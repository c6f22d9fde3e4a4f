"""Declare the protocols through which the flows use the outside world.

A protocol is here if it has two implementations; `wiring.py` chooses between them. The stores have
one, `adapters/dynamo`, which tests run over tables in memory, so `services` is typed with them.

A store that does not answer raises `errors.Unavailable`. A conditional write that lost a race
raises `StaleRecord`, `StaleMerchant` or `StaleEvent` with the winner's version; the loser decides
again from that version and never repeats its write blindly.

- `runtime`: clock, threads, the errors of secrets and passkeys
- `sessions`: what the stores return and raise
- `merchants`: merchants, which some functions cache
- `webhooks`: the queue that announces webhook events, and their receivers
- `wallets`: the queue for clean-up at wallets
- `mail`: e-mail
- `services`: the three bags in which flows get their ports and stores
"""
