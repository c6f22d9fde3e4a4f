"""The payment engine: one instruction to pay, from its approval to its proof.

Its modules follow the three resources of Open Payments: the grant (`approval`), the outgoing
payment (`instruct`) and the incoming payment (`proof`); `schedule` decides when wallets are asked.
It does not depend on the checkout: it moves any record with the fields of a payment in flight
(domain/payment/in_flight.py), and payer, receiver and token are arguments.
"""
