"""The payment engine: one instruction to pay, from its approval to its proof.

Its modules follow the three resources of Open Payments: the grant (`approval`), the outgoing
payment (`instruct`) and the incoming payment (`proof`); `schedule` decides when wallets are asked.
The engine does not depend on the checkout. It works on any record with the fields of a payment in
flight (domain/payment/in_flight.py), and takes payer, receiver and token as arguments.
"""
