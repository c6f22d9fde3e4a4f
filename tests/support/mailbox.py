"""A stand-in for Amazon SES: takes `SendEmail` as boto3 sends it, and delivers MIME.

The standard library's parser reads it as a mail program does. The stand-in refuses an address or a
subject that would write a header of its own, as SES does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from checkout.adapters.mail import SesMail

SENDER = "notices@pay.example"


@dataclass
class Mailbox:
    """All e-mails so far. `refuses` answers with this error; `silent` takes it, answers nothing."""

    raw: list[bytes] = field(default_factory=list)
    refuses: str | None = None
    silent: bool = False

    def send_email(self, **request: Any) -> dict[str, str]:
        if self.refuses:
            raise ClientError({"Error": {"Code": self.refuses, "Message": "no"}}, "SendEmail")
        simple = request["Content"]["Simple"]
        message = EmailMessage(policy=policy.SMTP)
        message["From"] = request["FromEmailAddress"]
        [message["To"]] = request["Destination"]["ToAddresses"]
        message["Subject"] = simple["Subject"]["Data"]
        message.set_content(simple["Body"]["Text"]["Data"])
        message.add_alternative(simple["Body"]["Html"]["Data"], subtype="html")
        self.raw.append(message.as_bytes())
        if self.silent:
            raise ReadTimeoutError(endpoint_url="https://email.example")
        return {"MessageId": str(len(self.raw))}

    def mail(self) -> SesMail:
        """Return the product's mailer, which sends to here."""
        return SesMail(lambda: self, SENDER)

    @property
    def read(self) -> list[EmailMessage]:
        """The e-mails as a mail program reads them."""
        found = [message_from_bytes(each, policy=policy.default) for each in self.raw]
        assert not any(each.defects for each in found)
        return found


def text_of(message: EmailMessage, kind: str = "plain") -> str:
    """Return the text or the HTML part."""
    part = message.get_body((kind,))
    assert part is not None
    content: str = part.get_content()
    return content.replace("\r\n", "\n")


def ses_request(*reply_to: str) -> dict[str, Any]:
    """Return the request for one letter to Eva, as SES gets it."""
    body = {"Text": _part("Paid: 18.54 €"), "Html": _part("<p>Paid</p>")}
    return {
        "FromEmailAddress": "receipts@pay.example",
        "Destination": {"ToAddresses": ["eva@customer.example"]},
        "ReplyToAddresses": list(reply_to),
        "Content": {"Simple": {"Subject": _part("Order 42"), "Body": body}},
    }


def _part(text: str) -> dict[str, str]:
    return {"Data": text, "Charset": "UTF-8"}
