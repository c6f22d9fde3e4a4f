"""Texts and links that strangers send, in the hope that something takes them as they are."""

from __future__ import annotations

from typing import Final

EVIL = "evil.example"

HIDDEN: Final = {
    "new line": "Shop\nhttps://evil.example",
    "carriage return": "Shop\rBank",
    "nothing": "Shop\0",
    "escape": "\x1b[2JBank",
    "right to left": "Shop \u202eknaB",
    "zero width": "Ba\u200bnk",
    "byte order": "\ufeffBank",
    "line separator": "Shop\u2028Bank",
    "isolate": "\u2066Bank\u2069",
    "tag": "Bank\U000e0041",
    "private use": "Bank\ue000",
    "surrogate": "Bank\ud800",
    "no-break space": "Shop\xa0Bank",
    "too long": "x" * 101,
    "blanks of Braille": "\u2800\u2800",
    "fillers of Hangul": "\u3164",
    "filler within": "Ba\u115fnk",
    "half-width filler": "Bank\uffa0",
    "grapheme joiner": "Ba\u034fnk",
    "vowel of Khmer that is not shown": "Bank\u17b4",
    "selector of Mongolian": "Bank\u180b",
    "selector without an emoji": "Bank\ufe0f",
    "selector without an ideograph": "Bank\U000e0100",
    "joiner between Latin letters": "Ba\u200dnk",
    "placeholder of an object": "\ufffc Bank",
    "no letter and no digit": "…",
}
# A mail program makes a link of each.
LEADING: Final = {
    "web address": "Your account is locked: https://evil.example/login",
    "host and path": "Log in at evil.example/login",
    "host and query": "evil.example?id=1",
    "www": "Bank, WWW.evil.example",
    "e-mail address": "help@evil.example",
    "full width": "https：／／evil．example",
    "small at": "help﹫evil.example",
}
SCRIPTS: Final = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; DROP TABLE merchants; --",
    '","authServer":"evil.example","x":"',
    '"}],"keys":[{"kid":"1"}',
    "\\u003cscript\\u003e",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "javascript:alert(1)",
    "]]></publicName>",
)


# Each is read by some program as an address of evil.example, as a script, or as something local.
NO_LINKS = [
    *(f"https://shop.example/{end}" for end in ("%0d%0aSet-Cookie:a=b", "?a=%0A", "%00", "#%0D")),
    *(f"javascript:{rest}" for rest in ("alert(1)", "//shop.example/%0aalert(1)")),
    *("JavaScript:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)", "\x01javascript:x"),
    *("data:text/html,<script>alert(1)</script>", "vbscript:x", "file:///etc/passwd"),
    "about:blank",
    *("blob:https://shop.example/x", "view-source:https://shop.example", "intent://shop.example"),
    *("ftp://shop.example/", "ws://shop.example/", "mailto:a@shop.example", "tel:1", "https:"),
    *(f"//{EVIL}", f"/{EVIL}", f"\\\\{EVIL}", f"/\\{EVIL}", f"https:{EVIL}", f"https:/{EVIL}"),
    *(f"https:///{EVIL}", f"https:\\\\{EVIL}", f"https://{EVIL}\\@shop.example/", f"///{EVIL}"),
    *(f"https://shop.example@{EVIL}/", f"https://shop.example:443@{EVIL}/", f"https://@{EVIL}/"),
    *(f"https://shop.example%40{EVIL}/", f"https://shop.example%2f@{EVIL}/"),
    *(f"https://{EVIL}%00.shop.example/",),
    *(f"https://shop.example\\.{EVIL}/", f"https://shop.example\t.{EVIL}/", f"https://{EVIL}\n/"),
    *(f"https://shop.example/\r\nLocation: https://{EVIL}", "https://shop.example/\x00"),
    *("https://shop.example/ x",),
    *("https://shop。example/", "https://shop．example/", "https://ſhop.example/"),
    *("https://shop.exampl℮/",),
    *("https://ⓢhop.example/", "https://shop.example\u200b/", "https://\u202eelpmaxe.pohs/"),
    *("https://[::1/",),
    *("https://shop.example:0/", "https://shop.example:99999/", "https://shop.example:/x:y"),
    *("https://shop.example:４４３/",),
    *("https://.shop.example/", "https://shop..example/", "https://-shop.example/"),
    *("https://shop_.-/",),
    *("http://shop.example/", "HTTP://localhost.shop.example/", "http://localhost/"),
    *("http://127.0.0.1/",),
    *("https://{CHECKOUT_SESSION_ID}.evil.example/", "https://x@{CHECKOUT_SESSION_ID}/"),
    *("https://{CHECKOUT_SESSION_ID}",),
    *("https://shop.example/<script>", 'https://shop.example/"x', "https://shop.example/`x`"),
    *("https://shop.example/{x}",),
    *("https://shop.example/%zz", "https://shop.example/\u2028x", "https://shop.example/\x7f"),
    *("https://shop.example/^|",),
    *("", " ", "https://", "https://?x", "https://#x", "x", "?next=https://evil.example"),
    *("https://" + "a" * 2050,),
    *("https://169.254.169.254/latest", "https://metadata.google.internal/"),
    *("https://[fd00:ec2::254]/",),
]  # fmt: skip
