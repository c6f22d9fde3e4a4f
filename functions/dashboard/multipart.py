"""Forms with a file (multipart/form-data, RFC 7578), taken apart by the standard library's parser,
which keeps every byte of a part.
"""

from __future__ import annotations

from email import message_from_bytes
from email.message import Message

from checkout.domain.errors import ParameterInvalid


def parts(content_type: str, raw: bytes) -> dict[str, bytes]:
    """Each field by its name. Raises ParameterInvalid for a doubled one."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    payload = message_from_bytes(head + raw).get_payload()
    found: dict[str, bytes] = {}
    for part in payload if isinstance(payload, list) else []:
        assert isinstance(part, Message)
        name = str(part.get_param("name", "", header="content-disposition"))
        content = part.get_payload(decode=True)
        if name in found:
            raise ParameterInvalid("A field is given twice.")
        found[name] = content if isinstance(content, bytes) else b""
    return found
