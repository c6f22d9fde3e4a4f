"""Write the tables and texts of the documentation that come from the code and template.yaml.

Run `python docs/tables.py`. Each table stands between `<!-- NAME -->` and `<!-- /NAME -->` in the
page that `PAGES` names; `tests/house/test_docs.py` checks that they are up to date.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from api.v1.parity import CREATE_SESSION, Does, Parameter
from checkout.domain.merchant import doors
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import RefundCap, Right, Role, rights_of
from checkout.domain.merchant.reach import Effect, Standing
from checkout.domain.payment import mandate_transitions
from checkout.domain.payment.mandate_transitions import MANDATE_TRANSITIONS
from checkout.domain.refund import transitions as refund_transitions
from checkout.domain.refund.transitions import REFUND_TRANSITIONS
from checkout.domain.session import transitions
from checkout.domain.session.transitions import TRANSITIONS
from checkout.domain.webhooks.event_types import EVENTS, PING
from checkout.settings import Settings
from checkout.web import STATUS
from dashboard.app import DOORS

ROOT: Final = Path(__file__).parent.parent
TARGET: Final = re.compile(r"^([a-z-]+):.*## (.*)$", re.MULTILINE)
# The meaning of each error code, as docs/errors.md shows it.
MEANINGS: Final = {
    "amount_not_representable": "The merchant's wallet cannot hold this amount exactly.",
    "amount_too_large": "A price or the total is above the limit.",
    "amount_too_small": "A price is below 0, or the total is 0.",
    "amount_too_small_for_wallet": "The amount is too small for the customer's wallet to send.",
    "api_key_invalid": "The API key is unknown or revoked, or has ended.",
    "api_key_missing": "There is no `Authorization: Bearer` header.",
    "body_too_large": "The body is larger than 256 KiB.",
    "callback_invalid": "The wallet's callback does not verify. Nothing was done.",
    "content_type_invalid": "The body is not JSON in UTF-8, nor, under `/v1`, a form.",
    "currency_mismatch": "Line items have different currencies.",
    "currency_not_supported": "The currency is not that of the merchant's wallet.",
    "cursor_invalid": "The cursor is not `next_cursor` of this list.",
    "email_invalid": "This is not an e-mail address.",
    "idempotency_key_invalid": "The key is not 1 to 255 printable ASCII characters.",
    "idempotency_key_reused": "The key was used with another body, or at another address.",
    "internal_error": "A bug. Report it with the `request_id`.",
    "invalid_json": "The body is not one JSON object in UTF-8, without repeated names.",
    "key_unexpected_state": "The API key's state does not allow this.",
    "mail_refused": "The mail service did not take the e-mail.",
    "member_unexpected_state": "The state of the member or the invitation does not allow this.",
    "merchant_suspended": "The operator has suspended the merchant, or paused all sales.",
    "merchant_unproven": "The shop's wallet is to be confirmed by its owner, at `/dashboard`.",
    "merchant_wallet_error": "The merchant's own wallet provider failed.",
    "method_not_allowed": "The method is not allowed here.",
    "parameter_invalid": "A value is not allowed; `param` names it.",
    "parameter_invalid_integer": "A value is not an integer, or out of range; `param` names it.",
    "parameter_missing": "A required field is missing; `param` names it.",
    "parameter_unknown": "There is no such field; `param` names it.",
    "passkey_invalid": "The passkey is unknown, or its signature does not verify.",
    "payment_in_progress": "A payment may be under way, so the session cannot be ended.",
    "permission_missing": "The API key lacks the scope, or the person lacks the role.",
    "rate_limited": "Too many requests; see the header `Retry-After`.",
    "receipts_used_up": "The receipt has already been sent three times, the maximum.",
    "refund_unexpected_state": "The refund's status, or the session's money, does not allow this.",
    "resource_missing": "There is no such address or object, or it is another merchant's.",
    "session_busy": "Another request is working on this session. Try again in a moment.",
    "conflict": "Another request changed the same API key, member, settings or event. Try again.",
    "session_unexpected_state": "The session's status does not allow this.",
    "unavailable": "The database or the key service did not answer. Nothing is lost.",
    "url_invalid": "A URL is not valid, not on a return host, or not public (webhooks).",
    "wallet_invalid": "There is no Open Payments wallet at this address.",
    "wallet_unavailable": "The wallet cannot make this payment, such as when it is not connected.",
    "wallet_unreachable": "The customer's wallet provider did not give a usable answer.",
    "webhook_unexpected_state": "The webhook's or the event's state does not allow this.",
}

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from sandbox.template import resources, template  # noqa: E402 - found by the line above


def states() -> str:
    """Return the transitions that change a session's status."""
    rows = [
        f"| {source} | {event.replace('_', ' ')} | {row.when.text} | {row.to} |"
        for (source, event), row in TRANSITIONS.items()
        if row.to is not source
    ]
    return "\n".join(["| from | event | when | to |", "|---|---|---|---|", *rows])


def diagram() -> str:
    """Return the same transitions as a Mermaid state diagram."""
    arrows = sorted({(s, row.to) for (s, _), row in TRANSITIONS.items() if row.to is not s})
    lines = [f"    {source} --> {target}" for source, target in arrows]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> open", *lines, "```"])


def order(first: str = "", end: str = "\n\nThe invariants,") -> str:
    """Return the order of writes around the money, as transitions.py tells it.

    `first` is where a part of it begins, `end` is behind it. Raise ValueError if one is missing.
    """
    told = inspect.getdoc(transitions) or ""
    begin = told.index(first, told.index("====\n\n") + 6)
    return f"```text\n{told[begin : told.index(end, begin)].strip()}\n```"


def refund_order() -> str:
    """Return the order of a refund's writes, as refund_transitions.py tells it."""
    told = inspect.getdoc(refund_transitions) or ""
    begin, end = told.index("Request (flows"), told.index("\n\nA refund is canceled only before R2")
    return f"```text\n{told[begin:end].strip()}\n```"


def refund_states() -> str:
    """Return the transitions of a refund."""
    rows = [
        f"| {source} | {event.replace('_', ' ')} | {row.when.text} | {row.to} |"
        for (source, event), row in REFUND_TRANSITIONS.items()
        if row.to is not source
    ]
    return "\n".join(["| from | event | when | to |", "|---|---|---|---|", *rows])


def mandate_order() -> str:
    """Return the order of a mandate's writes, as mandate_transitions.py tells it."""
    told = inspect.getdoc(mandate_transitions) or ""
    return f"```text\n{told[told.index('Approve (flows') :].strip()}\n```"


def mandate_states() -> str:
    """Return the transitions of a mandate, where they lead to another state."""
    rows = [
        f"| {source} | {event.replace('_', ' ')} | {row.when.text} | {row.to} |"
        for (source, event), row in MANDATE_TRANSITIONS.items()
        if row.to is not source
    ]
    return "\n".join(["| from | event | when | to |", "|---|---|---|---|", *rows])


def settings() -> str:
    """Return every setting with its meaning and default."""
    rows = []
    for setting in fields(Settings):
        default = "required" if setting.default is MISSING else f"`{setting.default}`"
        default = "" if default in ("``", "`()`") else default
        rows.append(f"| `{setting.name.upper()}` | {setting.metadata['text']} | {default} |")
    return "\n".join(["| setting | meaning | default |", "|---|---|---|", *rows])


def errors() -> str:
    """Return every error code with its status, type and meaning. Raise KeyError without one."""
    places = {error.code: place for error, place in STATUS.items()}
    places["internal_error"] = (500, "api_error")
    rows = [
        f"| {status} | `{type_}` | `{code}` | {MEANINGS[code]} |"
        for code, (status, type_) in sorted(places.items(), key=lambda item: (item[1], item[0]))
    ]
    return "\n".join(["| status | type | code | meaning |", "|---|---|---|---|", *rows])


def targets() -> str:
    """Return the targets that `make` lists."""
    text = (ROOT / "Makefile").read_text("utf-8")
    rows = [f"| `make {name}` | {what} |" for name, what in TARGET.findall(text)]
    return "\n".join(["| command | does |", "|---|---|", *rows])


def parameters() -> str:
    """Return the parameters of template.yaml."""
    rows = [
        f"| `{name}` | {each['Description']} | {f'`{default}`' if default else ''} |"
        for name, each in template()["Parameters"].items()
        for default in [each["Default"]]
    ]
    return "\n".join(["| parameter | meaning | default |", "|---|---|---|", *rows])


def alarms() -> str:
    """Return the alarms of template.yaml."""
    rows = [
        f"| `{name.removesuffix('Alarm')}` | {each['AlarmDescription']} |"
        for name, each in resources("AWS::CloudWatch::Alarm").items()
    ]
    return "\n".join(["| alarm | when |", "|---|---|", *rows])


def parity() -> str:
    """Return every parameter of `POST /v1/checkout/sessions`, and what becomes of it."""
    order = [Does.TAKEN, Does.IGNORED, Does.REFUSED]
    rows = [
        f"| `{row.path}` | {row.does}{_only(row)} | {row.text} |"
        for row in sorted(CREATE_SESSION, key=lambda row: order.index(row.does))
    ]
    return "\n".join(["| parameter | is | |", "|---|---|---|", *rows])


def _only(row: Parameter) -> str:
    """Return the values to which a row is limited; for others it is refused."""
    values = " or ".join(f"`{each}`" for each in row.only)
    return f" if {values}, otherwise refused" if values and row.does is Does.IGNORED else ""


def events() -> str:
    """Return every type of event, what it says, and to which endpoints it is sent."""
    rows = [
        f"| `{name}` | {each.sentence} | {'if you ask for it' if each.optional else sent} |"
        for name, each in EVENTS.items()
        for sent in ["by hand, from the dashboard" if name == PING else "always"]
    ]
    return "\n".join(["| `Checkout-Event-Type` | what happened | sent |", "|---|---|---|", *rows])


def stripe_events() -> str:
    """Return the types of events that have another name in Stripe's form."""
    rows = [f"| `{name}` | `{each.stripe}` |" for name, each in EVENTS.items() if each.stripe]
    return "\n".join(["| event | `type` in Stripe's form |", "|---|---|", *rows])


def reach() -> str:
    """Return every effect that leaves us, whom it reaches, and in which standings of a shop."""
    rows = [
        f"| {each.what} | {each.to} | {' | '.join(_said(each, one) for one in Standing)} |"
        for each in Effect
    ]
    head = f"| effect | reaches | {' | '.join(Standing)} |"
    return "\n".join([head, "|---|---|---|---|---|", *rows])


def _said(effect: Effect, standing: Standing) -> str:
    return "yes" if standing in effect.standings else "no"


def rights() -> str:
    """Return who has which right in the dashboard."""
    limit = RefundCap(once=1)
    actors: dict[str, Any] = {
        "support": {"role": Role.SUPPORT},
        "support with a limit": {"role": Role.SUPPORT, "refund_cap": limit},
        "developer": {"role": Role.DEVELOPER},
        "developer with a limit": {"role": Role.DEVELOPER, "refund_cap": limit},
        "owner": {"role": Role.OWNER},
        "key that may do everything": {"role": Role.OWNER},
        "key that may do everything but refund": {"role": Role.OWNER, "moves_money": False},
        "key that may only read": {"role": Role.SUPPORT, "moves_money": False},
    }
    rows = []
    for name, changes in actors.items():
        actor: Any = SimpleNamespace(**{"refund_cap": None, "moves_money": True, **changes})
        marks = ("yes" if right in rights_of(actor) else "" for right in Right)
        rows.append(f"| {name} | {' | '.join(marks)} |")
    head = f"| signed in as | {' | '.join(Right)} |"
    return "\n".join([head, "|---" * (len(Right) + 1) + "|", *rows])


def _doors(table: Mapping[tuple[str, str], Door[Any]], prefix: str = "") -> str:
    """Return each route with what it needs, what it does, and what a limit leaves of that."""
    rows = [
        f"| `{method} {prefix}{path}` | `{door.needs}` | {door.does} | {door.limit or ''} |"
        for (method, path), door in table.items()
    ]
    head = "| door | needs | moves, changes or reveals | an actor with a limit |"
    return "\n".join([head, "|---|---|---|---|", *rows])


def proving() -> str:
    """Return the steps of the proving day."""
    from operations.proving_day import listed

    return listed()


def scaling(name: str) -> str:
    """Return a table of benchmarks/scaling.py."""
    from benchmarks import scaling as computed

    table: str = getattr(computed, name)()
    return table


PAGES: Final[Mapping[str, Mapping[str, Callable[[], str]]]] = {
    "docs/reference/states.md": {"diagram": diagram, "states": states, "order": order},
    "docs/payments.md": {
        "flow": partial(order, "Create (", "\n\nReconcile."),
        "fence": partial(order, "The fence proves", "\n\nMoney from outside"),
    },
    "docs/refunds.md": {
        "refund-order": refund_order,
        "refund-states": refund_states,
        "mandate-order": mandate_order,
        "mandate-states": mandate_states,
    },
    "docs/webhooks.md": {"events": events, "stripe-events": stripe_events},
    "docs/stripe.md": {"parity": parity},
    "docs/errors.md": {"errors": errors},
    "docs/security.md": {
        "rights": rights,
        "dashboard-doors": partial(_doors, DOORS, "/dashboard"),
        "api-doors": partial(_doors, doors.API),
        "reach": reach,
    },
    "docs/settings.md": {"settings": settings},
    "docs/development.md": {"targets": targets},
    "docs/deploying.md": {"parameters": parameters, "alarms": alarms},
    "docs/proving-day.md": {"proving": proving},
    "docs/scaling.md": {
        name: partial(scaling, name) for name in ("rates", "breaks", "units", "limits")
    },
}


def refreshed(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """Return `text` with every marked table made anew. Raise ValueError if a mark is missing."""
    for name, make in tables.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        table = make()
        text, found = marked.subn(lambda m, t=table: f"{m[1]}{t}\n{m[2]}", text)  # type: ignore[misc]
        if found != 1:
            raise ValueError(f"there must be one place for the table {name}")
    return text


if __name__ == "__main__":
    for page, tables in PAGES.items():
        path = ROOT / page
        path.write_text(refreshed(path.read_text("utf-8"), tables), "utf-8")
