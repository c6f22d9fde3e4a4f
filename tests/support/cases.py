"""Cases that tests of several layers try: order numbers, pictures, mistyped wallet addresses."""

from __future__ import annotations

from typing import Final

from checkout.domain.ground.typed_address import AddressMistake
from tests.support.basics import words

# The reference and the metadata of a session; its number; whether something says that it is one.
ORDER_NUMBERS: Final = [
    ("R-7", "{}", "R-7", True),
    ("R-7", '{"order":"42"}', "R-7", True),
    (" R-7 ", '{"order":"42"}', "R-7", True),
    ("  ", '{"order":"42"}', "42", True),
    (None, '{"order":"42","x":"y"}', "42", True),
    (None, '{"note":"vip","order":"42"}', "42", True),
    (None, '{"paid":true,"order":"42"}', "42", True),
    (None, '{"order_id":42}', "42", True),
    (None, '{"Order-Number":" A-7 "}', "A-7", True),
    (None, '{"order":"1","order_number":"2"}', "2", True),
    (None, '{"order":true,"invoice":7}', "7", True),
    (None, '{"note":"vip"}', "vip", False),
    (None, '{"gift":true,"note":"vip"}', "vip", False),
    (None, '{"order":null,"weight":1.5}', "1.5", False),
    (None, '{"order":"  "}', None, False),
    (None, '{"gift":true,"order":null}', None, False),
    (None, "{}", None, False),
]


PNG_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"


def png_head(width: int, height: int) -> bytes:
    sides = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + sides + b"\x08\x06\x00\x00\x00crc!"


def jpeg(width: int, height: int, before: bytes = b"\xff\xe0\x00\x04JF") -> bytes:
    """A progressive JPEG with a segment before its frame header, as most have."""
    sides = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    frame = b"\xff\xc2\x00\x0b\x08" + sides + b"\x01\x01\x11\x00"
    return b"\xff\xd8" + before + frame + b"\xff\xda\x00\x02pixels\xff\xd9"


def webp(chunk: bytes) -> bytes:
    return b"RIFF" + (4 + len(chunk)).to_bytes(4, "little") + b"WEBP" + chunk


# Of two pixels a side. The last is the form of a photograph.
PICTURES = {
    "image/png": png_head(2, 2) + b"pixels" + PNG_END,
    "image/jpeg": jpeg(2, 2),
    "image/webp": webp(b"VP8 \x10\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x02\x00\x02\x00pixels"),
}


# Texts that cannot be a wallet address, by their mistake.
MISTYPED: Final[dict[AddressMistake, list[str]]] = {
    AddressMistake.NOTHING: ["", "   ", "“”"],
    AddressMistake.TOO_LONG: [
        "https://wallet.example/" + "a" * 2048,
        "wallet.example/" + "é" * 800,
    ],
    AddressMistake.CARD: [
        "4242 4242 4242 4242",
        "4242424242424242",
        "4242-4242-4242-4242",
        "4242 4242 4242 4241",  # a wrong digit
        "3782 822463 10005",
        "4242 4242 4242 4242 12/28 123",
        "٤٢٤٢ ٤٢٤٢ ٤٢٤٢ ٤٢٤٢",
    ],
    AddressMistake.IBAN: [
        "DE89 3704 0044 0532 0130 00",
        "gb29nwbk60161331926819",
        "IBAN: FR76 3000 6000 0112 3456 7890 189",
    ],
    AddressMistake.EMAIL: [
        *words("alice@wallet.example mailto:alice@wallet.example alice@upi $alice@wallet.example"),
        "Alice Smith <alice@wallet.example>",
    ],
    AddressMistake.PHONE: [
        "+254 712 345 678",
        "0171 2345678",
        "(0)20-7946-0958",
        "0044 20 7946 0958",
    ],
    AddressMistake.NUMBER: ["1234", "12-34-56", "12/28", "8.8.8.8"],
    AddressMistake.CRYPTO: words(
        """0x52908400098527886E0F7030069857D2E4169EE7 rEb8TK3gBgK5auZkwc6sHnXrGZZ8ex7DAS
        bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq bitcoin:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"""
    ),
    AddressMistake.SECRET: [
        "legal winner thank year wave sausage worth useful legal winner thank yellow",
        "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318",
    ],
    AddressMistake.NAME: [
        *words("alice paypal @alice $alice Zoë अमित"),
        "Alice Smith",
        "I have none.",
    ],
    AddressMistake.SPACES: [
        *(f"https://wallet.example/{odd}" for odd in ("al ice", "al\tice", "a\u200bb", "\ud800")),
        "wallet.example / alice",
        "wallet.example/\x00",
    ],
    AddressMistake.BEGINNING: words(
        r"""ftp://wallet.example/alice javascript://wallet.example/alice $https://wallet.example/a
        https//wallet.example/alice https:/wallet.example/alice htps://wallet.example/alice
        https;//wallet.example/alice https:\\wallet.example\alice https:///alice mailto:alice
        https://https://wallet.example/alice https://$wallet.example/alice javascript:alert(1)"""
    ),
    AddressMistake.CHARACTER: words(
        r"""https://alice:secret@wallet.example/ https://wallet.example@evil.example/
        https://wallet.example/alice?a=b https://wallet.example/alice? wallet.example\alice
        https://wallet.example/alice#a https://wallet.example/a/../b"""
    ),
    AddressMistake.COMMA: words("wallet,example/alice https://wallet,example/alice"),
    AddressMistake.PORT: words(
        "https://wallet.example:8443/alice https://wallet.example:/a https://wallet.example:x/a"
    ),
    AddressMistake.HOST: [
        "é" * 800 + ".example",
        "https://" + "a." * 130 + "example/",
        "https://⒈⒈.example/\u2024",
        *words("""$ & https://localhost/alice wallet/alice /alice https://wallet..example/alice
        https://-wallet.example/alice https://wal_let.example/alice https://10.0.0.1/alice
        https://[::1]/alice https://[::1/alice metadata.google.internal/a"""),
    ],
}
