"""The server of tokens that a registry sends its clients to, on loopback with TLS."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt

from foundry_implementation_actor.demo.loopback import LoopbackServer
from support.registry import PASSWORD, USER

SERVICE, ISSUER = "images of the tests", "tokens of the tests"
# For so long after its end docker-registry takes a token still.
_LEEWAY_S = 60


class TokenServer(LoopbackServer):
    """Gives who logs in as USER tokens for what it asks for and has a right to.

    `rights` are the actions that USER may have; `life_s` is how long tokens are taken; `asked` has the scope of each
    request that was granted, and `taken_until` when the last token ends, in seconds since the epoch.

    Args:
        certificate: the folder of a certificate of `make_certificate`, for TLS and for the tokens.
        password: of USER.
    """

    def __init__(self, certificate: Path, password: str = PASSWORD) -> None:
        super().__init__(_Tokens)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self._certificate = certificate
        self.wanted = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()
        self.rights = {"pull", "push", "delete"}
        self.life_s = 300
        self.taken_until = 0
        self.asked: list[str] = []

    @property
    def settings(self) -> dict[str, Any]:
        """What a registry has to know of it."""
        realm = f"https://127.0.0.1:{self.server_port}/token?first=1"
        bundle = str(self._certificate / "cert.pem")
        return {"realm": realm, "service": SERVICE, "issuer": ISSUER, "rootcertbundle": bundle}

    def token(self, repository: str, actions: Sequence[str]) -> str:
        """A token for what USER may do of these actions."""
        now = int(time.time())
        self.taken_until = now + self.life_s
        access = {"type": "repository", "name": repository, "actions": [one for one in actions if one in self.rights]}
        said = {"iss": ISSUER, "sub": USER, "aud": SERVICE, "access": [access], "jti": str(time.monotonic_ns())}
        times = {"nbf": now - 120, "iat": now - 120, "exp": self.taken_until - _LEEWAY_S}
        vouched = ssl.PEM_cert_to_DER_cert((self._certificate / "cert.pem").read_text())
        headers = {"x5c": [base64.b64encode(vouched).decode()]}
        return jwt.encode({**said, **times}, (self._certificate / "key.pem").read_text(), "ES256", headers)


class _Tokens(BaseHTTPRequestHandler):
    server: TokenServer

    def log_message(self, *args: object) -> None:
        """What was asked is kept in `TokenServer.asked`."""

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if self.headers.get("Authorization") != self.server.wanted:
            self._tell(401, {"errors": [{"code": "UNAUTHORIZED", "message": "no such user here"}]})
        elif query["service"] != [SERVICE] or query["first"] != ["1"]:
            self._tell(400, {})
        else:
            [scope] = query["scope"]
            _, repository, actions = scope.split(":")
            # A registry writes the actions in any order.
            self.server.asked.append(f"repository:{repository}:{','.join(sorted(actions.split(',')))}")
            self._tell(200, {"token": self.server.token(repository, actions.split(","))})

    def _tell(self, status: int, said: object) -> None:
        told = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)
