"""Declare the protocols through which the flows use the outside world.

`wiring.py` chooses their implementations.

A store that does not answer raises `errors.Unavailable`. A conditional write that lost a race
raises `StaleSession`, `StaleMerchant` or `StaleEvent` with the winner's version; the loser decides
again from that version and never repeats its write blindly.

- `runtime`: clock, randomness, vault, database health
- `sessions`: checkout sessions and the daily tallies made of them
- `merchants`: merchants, API keys, dashboard sign-ins, audit log
- `webhooks`: webhook events, the queue that announces them, and their receivers
- `wallets`: Open Payments clients, and the queue for clean-up at wallets
- `stale`: the base of the errors for lost races
- `services`: the three bags in which flows get their ports
"""
