"""The payment engine: one instruction to pay, from its approval to the proof of the payment.

Three modules are about the three resources of Open Payments: the grant (`approval`), the outgoing
payment (`instruct`) and the incoming payment (`proof`). `schedule` decides when wallets are asked.
The engine works on any record with the fields of a payment that is not decided yet
(domain/payment/in_flight.py), and takes payer, receiver and token as arguments. So the engine does
not depend on the checkout.
"""
