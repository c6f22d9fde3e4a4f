"""The payment engine: one instruction to pay, from its approval to its proof.

It is cut along the three resources of Open Payments: the grant (`approval`), the outgoing payment
(`instruct`) and the incoming payment (`proof`); `schedule` says when wallets are asked. It knows no
checkout: it moves any record that has the fields of a payment in flight
(domain/payment/in_flight.py), and payer, receiver and token are arguments.
"""
