"""Parse forms with a file (multipart/form-data, RFC 7578) as browsers send them.

Every byte of a part is kept, and the time is linear in the length. The standard library's mail
parser is not used, because it follows nested parts to any depth.
"""

from __future__ import annotations

import re
from typing import Final

from checkout.domain.ground.errors import ParameterInvalid

_BOUNDARY: Final = re.compile(r"boundary=\"?([0-9A-Za-z'()+_,./:=?-]{1,70})\"?")
_NAME: Final = re.compile(rb'content-disposition: *form-data; *name="([^"\r\n]*)"', re.IGNORECASE)
_HEAD_MAX: Final = 1_024  # bytes of a part's headers that are searched for its name


def parts(content_type: str, raw: bytes) -> dict[str, bytes]:
    """Return the fields by name. Raise ParameterInvalid for a malformed form."""
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise ParameterInvalid("The form names no boundary between its parts.")
    found: dict[str, bytes] = {}
    for part in (b"\r\n" + raw).split(b"\r\n--" + boundary[1].encode())[1:]:
        head, _, content = part.partition(b"\r\n\r\n")
        named = _NAME.search(head[:_HEAD_MAX])
        if named is None:
            continue  # the end
        name = named[1].decode("utf-8", "replace")
        if name in found:
            raise ParameterInvalid("A field is given twice.")
        found[name] = content
    return found
