"""The interaction hash, which proves that an approval comes from the server that was asked.

Servers differ in the URL that they hash and in the encoding of the hash, so a small set of
candidates is accepted. Every candidate uses only data from direct calls to the server, so it binds
the approval to our nonce, the server's nonce and that server.

Source: RFC 9635, section 4.2.3.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from open_payments.urls import last_segment

_MAX_PRESENTED = 128
_MAX_REF = 1024
_TO_STANDARD = str.maketrans("-_ ", "+/+")  # a space is a "+" that was not percent-encoded


def matches(
    presented: str,
    *,
    client_nonce: str,
    finish_nonce: str,
    interact_ref: str,
    grant_url: str,
    continue_uri: str,
) -> str | None:
    """Return the name of the candidate whose hash is `presented` (query-decoded), else None.

    `grant_url` is the URL at which the grant was requested; `continue_uri` is from that server's
    answer. The comparison takes the same time whichever candidate matches, or if none matches.
    """
    digest = _decode(presented)
    if digest is None or not 0 < len(interact_ref) <= _MAX_REF or not _is_plain(interact_ref):
        return None
    found = None
    for name, endpoint in _candidates(grant_url, continue_uri):
        base = f"{client_nonce}\n{finish_nonce}\n{interact_ref}\n{endpoint}"
        expected = hashlib.sha256(base.encode()).digest()
        if hmac.compare_digest(expected, digest) and found is None:
            found = name
    return found


def _candidates(grant_url: str, continue_uri: str) -> list[tuple[str, str]]:
    toggled = grant_url.removesuffix("/") if grant_url.endswith("/") else f"{grant_url}/"
    found = [("grant_url", grant_url), ("grant_url_slash_toggled", toggled)]
    server, at, _ = continue_uri.rpartition("/continue/")
    if at:
        # The server's own name for itself, which differs from the grant URL in some deployments.
        found.append(("server_root", f"{server}/"))
        found.append(("server_tenant", f"{server}/{last_segment(grant_url)}"))
    return found


def _decode(presented: str) -> bytes | None:
    if len(presented) > _MAX_PRESENTED:
        return None
    text = presented.rstrip("=").translate(_TO_STANDARD)
    try:
        digest = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return digest if len(digest) == hashlib.sha256().digest_size else None


def _is_plain(text: str) -> bool:
    """Return false for a text with a line break, which would move text between hashed parts."""
    return text.isascii() and text.isprintable()
