"""Show a customer's details, requested and given, in the objects of `objects.py`.

The details are passed in plain text. If none are passed, each object shows that none were given.
"""

from __future__ import annotations

from typing import Any

from checkout.domain.ground.addresses import Address
from checkout.domain.session.collect import Collect, Detail, Place, Question, QuestionKind
from checkout.domain.session.customer_details import Answer, CustomerDetails


def asked(collect: Collect, details: CustomerDetails, *, auto: str | None) -> dict[str, Any]:
    """Return the fields of a `checkout.session` with the requested details and the answers.

    `auto` is the value of `billing_address_collection` if no billing address is requested.
    """
    billing = "required" if Place.BILLING in collect.required else "auto"
    ships = Place.SHIPPING in collect.asked
    return {
        "billing_address_collection": billing if Place.BILLING in collect.asked else auto,
        "custom_fields": _custom_fields(collect, details),
        **_name_collection(collect),
        "phone_number_collection": {"enabled": Detail.PHONE in collect.asked},
        "shipping_address_collection": (
            {"allowed_countries": list(collect.countries(Place.SHIPPING))} if ships else None
        ),
    }


def customer(collect: Collect, details: CustomerDetails, *, email: str | None) -> dict[str, Any]:
    """Return the `customer_details` of a session. `email` is the address that the shop gave."""
    return {
        "address": _address(details.billing),
        "business_name": None,
        "email": details.email or email,
        "individual_name": _individual(collect, details),
        "name": _payer(details),
        "phone": details.phone,
        "tax_exempt": "none",
        "tax_ids": [],
    }


def collected(collect: Collect, details: CustomerDetails) -> dict[str, Any] | None:
    """Return the `collected_information` of a session, or None if it is empty."""
    individual, place = _individual(collect, details), details.shipping
    if individual is None and place is None:
        return None
    return {
        "business_name": None,
        "individual_name": individual,
        "shipping_details": (
            {"address": _address(place), "name": place.name} if place is not None else None
        ),
    }


def shipping(details: CustomerDetails) -> dict[str, Any] | None:
    """Return a payment's and charge's `shipping`, which is also a session's `shipping_details`."""
    place = details.shipping
    if place is None:
        return None
    return {
        "address": _address(place),
        "carrier": None,
        "name": place.name,
        "phone": details.phone,
        "tracking_number": None,
    }


def billing_details(details: CustomerDetails, *, email: str | None) -> dict[str, Any]:
    """Return the `billing_details` of a charge. `email` is the address that the shop gave."""
    return {
        "address": _address(details.billing),
        "email": details.email or email,
        "name": _payer(details),
        "phone": details.phone,
        "tax_id": None,
    }


def _name_collection(collect: Collect) -> dict[str, Any]:
    """Return the field `name_collection`, which Stripe leaves out if no name is requested."""
    if Detail.NAME not in collect.asked:
        return {}
    optional = Detail.NAME not in collect.required
    return {"name_collection": {"individual": {"enabled": True, "optional": optional}}}


def _custom_fields(collect: Collect, details: CustomerDetails) -> list[dict[str, Any]]:
    """Return the questions with their answers.

    A session of a payment link has only the answers, because the questions belong to the link.
    """
    values = {each.key: each.value for each in details.answers}
    known = {each.key for each in collect.questions}
    others = (_question(each) for each in details.answers if each.key not in known)
    return [_custom_field(each, values.get(each.key)) for each in (*collect.questions, *others)]


def _question(answer: Answer) -> Question:
    """Return the question of an answer. Of its options, only the chosen one is known."""
    options = ((answer.value, answer.shown),) if answer.kind is QuestionKind.DROPDOWN else ()
    return Question(answer.key, answer.label, answer.kind, options=options)


def _custom_field(question: Question, value: str | None) -> dict[str, Any]:
    if question.kind is QuestionKind.DROPDOWN:
        options = [{"label": label, "value": each} for each, label in question.options]
        bounds: dict[str, Any] = {"options": options}
    else:
        bounds = {"maximum_length": question.most, "minimum_length": question.least}
    return {
        question.kind.value: {"default_value": None, **bounds, "value": value},
        "key": question.key,
        "label": {"custom": question.label, "type": "custom"},
        "optional": not question.required,
        "type": question.kind.value,
    }


def _individual(collect: Collect, details: CustomerDetails) -> str | None:
    return _payer(details) if Detail.NAME in collect.asked else None


def _payer(details: CustomerDetails) -> str | None:
    """Return the name of the payer, who need not be the person to whom the parcel goes."""
    billed = details.billing.name if details.billing is not None else None
    return billed or details.name


def _address(address: Address | None) -> dict[str, Any] | None:
    """Return an address in Stripe's parts.

    Stripe has no part for a district, which some parcels need, so the second line contains it.
    """
    if address is None:
        return None
    return {
        "city": address.city,
        "country": address.country,
        "line1": address.line1,
        "line2": ", ".join(filter(None, (address.line2, address.district))) or None,
        "postal_code": address.postal_code,
        "state": address.state,
    }
