"""Answers every GET with the same small cart, on port 8080 when it is started by itself."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

CART = {"lines": [{"article": "tea", "quantity": 2, "unit_cents": 450}], "total_cents": 900}


class Handler(BaseHTTPRequestHandler):
    """One request, one cart."""

    def do_GET(self) -> None:
        body = json.dumps(CART).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay quiet: nobody reads what a stub has to say."""


if __name__ == "__main__":
    HTTPServer(("", 8080), Handler).serve_forever()
