"""Compress texts with a dictionary of frequent parts: field names, events, addresses.

The first byte of a compressed text is the number of its dictionary. A dictionary never changes,
because every stored record needs the one it was written with. A better one gets the next number.
"""

from __future__ import annotations

import zlib
from typing import Final

from checkout.adapters.dynamo.wire import Value

_RAW: Final = -15  # zlib's largest window, without its header and checksum
_LEVEL: Final = 6

# Texts of the kinds that are stored, the most frequent ones last.
_1: Final = (
    b'{"id":"evt_","object":"event","api_version":"2026-10-28.endive","created":17,"data":{"obje'
    b'ct":{"id":"cs_","object":"checkout.session","adaptive_pricing":null,"after_expiration":nul'
    b'l,"allow_promotion_codes":null,"allowed_payment_method_types":null,"billing_address_collec'
    b'tion":null,"branding_settings":null,"client_secret":null,"collected_information":null,"con'
    b'sent":null,"consent_collection":null,"currency_conversion":null,"customer":null,"customer_'
    b'account":null,"customer_creation":null,"excluded_payment_method_types":null,"integration_i'
    b'dentifier":null,"invoice":null,"invoice_creation":null,"managed_payments":null,"name_colle'
    b'ction":null,"optional_items":null,"origin_context":null,"payment_link":null,"payment_metho'
    b'd_configuration_details":null,"payment_method_options":null,"permissions":null,"phone_numb'
    b'er_collection":null,"presentment_details":null,"recovered_from":null,"redirect_on_completi'
    b'on":null,"return_url":null,"saved_payment_method_options":null,"setup_intent":null,"shippi'
    b'ng_address_collection":null,"shipping_cost":null,"shipping_details":null,"subscription":nu'
    b'll,"tax_id_collection":null,"wallet_options":null,"amount_subtotal":2000,"amount_total":20'
    b'00,"automatic_tax":{"enabled":false,"liability":null,"provider":null,"status":null},"cance'
    b'l_url":"https://","client_reference_id":null,"created":17,"currency":"usd","custom_fields"'
    b':[],"custom_text":{"after_submit":null,"shipping_address":null,"submit":null,"terms_of_ser'
    b'vice_acceptance":null},"customer_details":{"email":null,"address":null,"name":null,"phone"'
    b':null,"tax_exempt":"none","tax_ids":[]},"customer_email":null,"discounts":[],"expires_at":'
    b'17,"livemode":false,"locale":null,"metadata":{},"mode":"payment","open_payments":{"status"'
    b':"completed","customer_wallet":"https://","incoming_payment":"https:///incoming-payments/"'
    b',"outgoing_payment":"https:///outgoing-payments/","amount_received":2000,"customer_debit":'
    b'{"value":"1854","asset_code":"EUR","asset_scale":2}},"payment_intent":"pi_","payment_metho'
    b'd_collection":"if_required","payment_method_types":["open_payments"],"payment_status":"pai'
    b'd","shipping_options":[],"status":"complete","submit_type":null,"success_url":"https://","'
    b'total_details":{"amount_discount":0,"amount_shipping":0,"amount_tax":0},"ui_mode":"hosted"'
    b',"url":null}},"livemode":false,"pending_webhooks":1,"request":{"id":null,"idempotency_key"'
    b':null},"type":"checkout.session.completed"}'
    b'{"id":"cs_","object":"checkout.session","status":"open","url":"https://","amount_total":20'
    b'00,"currency":"usd","mode":"payment","line_items":[{"price_data":{"currency":"usd","produc'
    b't_data":{"name":"Tea"},"unit_amount":1000},"quantity":2}],"metadata":{},"success_url":"htt'
    b'ps://","cancel_url":"https://","customer_wallet":null,"incoming_payment":null,"outgoing_pa'
    b'yment":null,"expires_at":"2026-","created_at":"2026-","completed_at":null,"amount_received'
    b'":null,"client_reference_id":null,"customer_debit":null}'
    b'{"id":"cs_","status":"completed","amount_total":2000,"currency":"usd","metadata":{},"outgo'
    b'ing_payment":"https:///outgoing-payments/","customer_wallet":"https://"}'
    b'{"created_at":17,"amount_total":2000,"currency":"usd","receive":[2000,"USD",2],"line_items'
    b'":[["usd","",null,1000,2]],"metadata_json":"{}","success_url":"https://shop.example/thanks'
    b'?session_id=cs_","cancel_url":"https://shop.example/basket","locale":"en","client_referenc'
    b'e_id":"order-","echo_json":"{}"}'
    b'"interact_url":"https://","closed_at":17,"problem":"approval_unusable","payment_refused","'
    b'payment_failed","wallet_unavailable","completed_at":17,"event":"evt_","submissions":[17],"'
    b'customer":["https://wallet.","EUR",2,"https://auth.","https://",null],"incoming_payment":['
    b'"https://.interledger.org/incoming-payments/",17],"quote":["https:///quotes/",[17,"EUR",2]'
    b',[17,"USD",2],17],"outgoing_payment":"https:///outgoing-payments/","history":[[17,"created'
    b'",null],[17,"checked",null],[17,"canceled",null],[17,"cancel_requested",null],[17,"expire_'
    b'requested",null],[17,"expiry_passed",null],[17,"closing_started",null],[17,"closed",null],'
    b'[17,"payment_disproved",null],[17,"money_found",null],[17,"accepted_as_paid",null],[17,"gi'
    b'ven_up",null],[17,"late_payment",null],[17,"erased",null],[17,"preparation_failed",null],['
    b'17,"approval_lost",null],[17,"payment_refused",null],[17,"wallet_submitted",null],[17,"ref'
    b'erence_stored",null],[17,"prepared",null],[17,"approval_claimed",null],[17,"payment_intend'
    b'ed",null],[17,"payment_created",null],[17,"reconciled",null]]'
)

DICTIONARIES: Final = {1: _1}
LATEST: Final = 1


def deflated(plain: str) -> Value:
    """Compress a text into a binary attribute."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, zdict=DICTIONARIES[LATEST])
    return {"B": bytes([LATEST]) + packer.compress(plain.encode()) + packer.flush()}


def inflated(value: Value) -> str:
    """Return the text of a compressed attribute. Raise KeyError or ValueError if it is damaged."""
    stored = memoryview(value["B"])
    unpacker = zlib.decompressobj(_RAW, zdict=DICTIONARIES[stored[0]])
    try:
        plain = unpacker.decompress(stored[1:])
    except zlib.error as error:
        raise ValueError("a compressed text is damaged") from error
    if not unpacker.eof:
        raise ValueError("a compressed text is cut off")
    return plain.decode()
