"""Keep what the customer's browser reports when it comes back from the wallet without an approval.

The `result` of such a return is unsigned, and it names no approval. So it decides nothing: it is
noted on the payment attempt that waits, once, if the browser proves that this approval was begun in
it or handed over to it.
"""

from __future__ import annotations

from typing import Final

from checkout.domain.attempts import running
from checkout.domain.payment_attempt import Outcome
from checkout.domain.session import Session
from checkout.domain.transitions import Event, IllegalTransition
from checkout.flows.payment import sealed
from checkout.flows.payment.sealed import Proof
from checkout.flows.payment.writes import move
from checkout.ports.services import PayServices
from checkout.ports.sessions import StaleSession

# What Rafiki's authorization server says in `result`; RFC 9635 has no such parameter.
RESULTS: Final = {"grant_rejected": Outcome.DECLINED, "invalid_interaction": Outcome.TIMED_OUT}


def note(services: PayServices, session: Session, result: str, *, browser: str) -> Session:
    """Note `result` on the waiting attempt; `browser` is the proof that the browser presents.

    Returns the session as it is then. A lost race leaves it to the winner.
    """
    reported, attempt = RESULTS.get(result), running(session)
    if reported is None or attempt is None or attempt.reported is not None:
        return session
    grant = sealed.pending_grant(services.vault, session)
    if grant is None or not grant.proves(browser, session.id, Proof.BROWSER):
        return session
    try:
        said = {"reported": reported, "note": reported.value}
        return move(services, session, Event.RETURN_REPORTED, **said)
    except StaleSession as stale:
        return stale.current
    except IllegalTransition:
        return session
