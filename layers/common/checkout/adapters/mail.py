"""`ports.Mail` on Amazon SES (API v2)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import ClientError

from checkout import telemetry
from checkout.adapters.aws import AWS_ERRORS, code
from checkout.domain.ground.errors import MailRefused
from checkout.ports import Email

# A failed call is not repeated, because SES may have sent the e-mail without answering. The times
# are in seconds.
ONCE: Final = Config(
    connect_timeout=1, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 1}
)

_OF_ADDRESS: Final = "BadRequestException"  # a wrong recipient, which the operator cannot correct

logger = logging.getLogger(__name__)


class SesMail:
    """Sends e-mails from `sender`. `client` creates the client, at a process's first e-mail."""

    def __init__(self, client: Callable[[], Any], sender: str) -> None:
        self._client = client
        self._sender = sender

    def send(self, letter: Email) -> None:
        try:
            self._client().send_email(
                FromEmailAddress=self._sender,
                Destination={"ToAddresses": [letter.to]},
                ReplyToAddresses=[letter.reply_to] if letter.reply_to else [],
                Content={
                    "Simple": {
                        "Subject": _utf8(letter.subject),
                        "Body": {"Text": _utf8(letter.text), "Html": _utf8(letter.html)},
                    }
                },
            )
        except AWS_ERRORS as error:
            # The error's message is not logged, because it may contain the address that the
            # customer typed.
            answered = isinstance(error, ClientError)
            reason = code(error) if isinstance(error, ClientError) else type(error).__name__
            if reason != _OF_ADDRESS:
                telemetry.count("MailRefused", reason=reason)
            logger.warning("SES did not take an e-mail: %s", reason, extra={"reason": reason})
            raise MailRefused(
                "The mail service did not take the e-mail.", maybe_sent=not answered
            ) from None


def _utf8(text: str) -> dict[str, str]:
    return {"Data": text, "Charset": "UTF-8"}
