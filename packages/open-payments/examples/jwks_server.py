"""Be your own client: serve the two documents by which wallets know who signs.

    python jwks_server.py https://shop.example/client KEY_ID private.key

Wallets read `https://shop.example/client` and `https://shop.example/client/jwks.json` with each
request. So no key has to be registered at a wallet: put this behind https, and sign with
`OpenPayments(shop, key, client="https://shop.example/client")`.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from open_payments import OpenPayments, SigningKey, WalletAddress, jwks


def documents(client: str, name: str, shop: WalletAddress, key: SigningKey) -> dict[str, object]:
    """Return the documents by their paths. `shop` lends the members that each document needs."""
    path = urlsplit(client).path
    about = {
        "id": client,
        "publicName": name,
        "assetCode": shop.asset_code,
        "assetScale": shop.asset_scale,
        "authServer": shop.auth_server,
        "resourceServer": shop.resource_server,
    }
    return {path: about, f"{path}/jwks.json": jwks([key.jwk()])}


def serve(found: dict[str, object], port: int = 8000) -> HTTPServer:
    """Return a server of these documents, which `serve_forever` starts."""

    class Documents(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = found.get(self.path)
            self.send_response(404 if document is None else 200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

    return HTTPServer(("127.0.0.1", port), Documents)


def main() -> None:
    client, key_id, key_file = sys.argv[1:]
    key = SigningKey.from_pem(key_id, Path(key_file).read_text())
    shop = OpenPayments.public().wallet_address(input("The wallet address of the shop: "))
    serve(documents(client, "The shop", shop, key)).serve_forever()


if __name__ == "__main__":
    main()
