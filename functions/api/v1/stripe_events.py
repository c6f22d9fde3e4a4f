"""The types of Stripe's events, of which most cannot happen here.

An endpoint may ask for all of them, as platforms with automatic set-up do. The list is that of
stripe-python 16.1 (`WebhookEndpoint.create`, parameter `enabled_events`); a line holds an object
and what can happen to it.
"""

from __future__ import annotations

from typing import Final

_TYPES: Final = """
    account: application.authorized application.deauthorized external_account.created
        external_account.deleted external_account.updated updated
    application_fee: created refund.updated refunded
    apps: install.created install.deleted install.updated
    balance: available
    balance_settings: updated
    billing: alert.triggered credit_balance_transaction.created credit_grant.created
        credit_grant.updated meter.created meter.deactivated meter.reactivated meter.updated
    billing_portal: configuration.created configuration.updated session.created
    capability: updated
    cash_balance: funds_available
    charge: captured dispute.closed dispute.created dispute.funds_reinstated
        dispute.funds_withdrawn dispute.updated expired failed pending refund.updated refunded
        succeeded updated
    checkout: session.async_payment_failed session.async_payment_succeeded session.completed
        session.expired
    climate: order.canceled order.created order.delayed order.delivered order.product_substituted
        product.created product.pricing_updated
    coupon: created deleted updated
    credit_note: created updated voided
    customer: created deleted discount.created discount.deleted discount.updated source.created
        source.deleted source.expiring source.updated subscription.created subscription.deleted
        subscription.paused subscription.pending_update_applied
        subscription.pending_update_expired subscription.resumed subscription.trial_will_end
        subscription.updated tax_id.created tax_id.deleted tax_id.updated updated
    customer_cash_balance_transaction: created
    entitlements: active_entitlement_summary.updated
    file: created
    financial_connections: account.account_numbers_updated account.created account.deactivated
        account.disconnected account.expected_deactivation_date_updated account.reactivated
        account.refreshed_balance account.refreshed_ownership account.refreshed_transactions
        account.supported_payment_method_types_updated account.upcoming_account_number_expiry
        account.upcoming_deactivation authorization.expected_deactivation_date_updated
        authorization.upcoming_deactivation
    identity: verification_session.canceled verification_session.created
        verification_session.processing verification_session.redacted
        verification_session.requires_input verification_session.verified
    invoice: created deleted finalization_failed finalized marked_uncollectible overdue overpaid
        paid payment_action_required payment_attempt_required payment_failed payment_succeeded
        sent upcoming updated voided will_be_due
    invoice_payment: paid
    invoiceitem: created deleted
    issuing_authorization: created request updated
    issuing_card: created updated
    issuing_cardholder: created updated
    issuing_dispute: closed created funds_reinstated funds_rescinded submitted updated
    issuing_personalization_design: activated deactivated rejected updated
    issuing_token: created updated
    issuing_transaction: created purchase_details_receipt_updated updated
    mandate: updated
    payment_intent: amount_capturable_updated canceled created partially_funded payment_failed
        processing requires_action succeeded
    payment_link: created updated
    payment_method: attached automatically_updated detached updated
    payout: canceled created failed paid reconciliation_completed updated
    person: created deleted updated
    plan: created deleted updated
    price: created deleted updated
    product: created deleted updated
    promotion_code: created updated
    quote: accepted canceled created finalized
    radar: early_fraud_warning.created early_fraud_warning.updated
    refund: created failed updated
    reporting: report_run.failed report_run.succeeded report_type.updated
    reserve: hold.created hold.updated plan.created plan.disabled plan.expired plan.updated
        release.created
    review: closed opened
    setup_intent: canceled created requires_action setup_failed succeeded
    sigma: scheduled_query_run.created
    source: canceled chargeable failed mandate_notification refund_attributes_required
        transaction.created transaction.updated
    subscription_schedule: aborted canceled completed created expiring released updated
    tax: settings.updated
    tax_rate: created updated
    terminal: reader.action_failed reader.action_succeeded reader.action_updated
    test_helpers: test_clock.advancing test_clock.created test_clock.deleted
        test_clock.internal_failure test_clock.ready
    three_d_secure: authentication.canceled authentication.challenge_started
        authentication.errored authentication.failed authentication.requires_challenge
        authentication.requires_submission authentication.succeeded
    topup: canceled created failed reversed succeeded
    transfer: created reversed updated
    treasury: credit_reversal.created credit_reversal.posted debit_reversal.completed
        debit_reversal.created debit_reversal.initial_credit_granted financial_account.closed
        financial_account.created financial_account.features_status_updated
        inbound_transfer.canceled inbound_transfer.created inbound_transfer.failed
        inbound_transfer.succeeded outbound_payment.canceled outbound_payment.created
        outbound_payment.expected_arrival_date_updated outbound_payment.failed
        outbound_payment.posted outbound_payment.returned
        outbound_payment.tracking_details_updated outbound_transfer.canceled
        outbound_transfer.created outbound_transfer.expected_arrival_date_updated
        outbound_transfer.failed outbound_transfer.posted outbound_transfer.returned
        outbound_transfer.tracking_details_updated received_credit.created received_credit.failed
        received_credit.succeeded received_debit.created
"""


def _read(lines: str) -> frozenset[str]:
    found, about = set(), ""
    for word in lines.split():
        if word.endswith(":"):
            about = word[:-1]
        else:
            found.add(f"{about}.{word}")
    return frozenset(found)


STRIPE_EVENTS: Final = _read(_TYPES)
