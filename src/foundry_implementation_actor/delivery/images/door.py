"""The way into a registry: one repository of it, its login sent only where and how it may be."""

from __future__ import annotations

import base64
import contextlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode, urljoin, urlsplit
from urllib.request import parse_http_list, parse_keqv_list

from requests import Response, Session
from requests.exceptions import ContentDecodingError

from foundry_implementation_actor.delivery.images.asked import Asked
from foundry_implementation_actor.delivery.images.line import Line
from foundry_implementation_actor.delivery.images.login import Login
from foundry_implementation_actor.egress.allowed import Target
from foundry_implementation_actor.egress.route import SiteProxy

_LONGEST_ANSWER = 4 * 1024 * 1024
_CHUNK = 65_536
_UNAUTHORIZED = 401
_REDIRECTS = frozenset({307, 308})
_READING_REDIRECTS = _REDIRECTS | {301, 302, 303}
_MOST_REDIRECTS = 5
# Docker's hub answers elsewhere than by its name.
_ANSWERS_AT = {"docker.io": "registry-1.docker.io"}


class Answer(NamedTuple):
    """What was answered, whole, and the address that it came from."""

    url: str
    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes

    def said(self) -> Any:
        """What it says in JSON.

        Raises:
            ValueError: it is no JSON.
        """
        try:
            return json.loads(self.content)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error


class RefusalError(Exception):
    """An answer that is none of success."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status} {answer.reason}")
        self.answer = answer


class InsecureError(Exception):
    """A registry wants something sent that everybody on the way could read."""


class RegistryDoor:
    """Requests to one repository of a registry, while it is open.

    Nothing of the host configures it: no `.netrc`, and only those proxies that are named. Every request has a time, but
    for the sending of a file: this goes on as long as it is taken, and `halt` does not raise.
    """

    def __init__(self, asked: Asked, halt: Callable[[], None] = lambda: None) -> None:
        self._asked = asked
        self._halt = halt
        host = _ANSWERS_AT.get(asked.host, asked.host)
        self._base = f"{'https' if asked.tls else 'http'}://{host}/v2/{asked.repository}/"
        self._line = Line()
        self._session = Session()
        self._session.trust_env = False
        self._session.verify = asked.certificates
        self._session.headers["Accept-Encoding"] = "identity"
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, self._line)
        self._authorization = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._session.close()

    def ask(self, method: str, path: str, headers: Mapping[str, str] = {}, body: bytes | Path = b"") -> Answer:
        """The answer to a request, redirects followed and logged in where that is asked for.

        Args:
            method: of HTTP.
            path: below the repository, or a whole address that the registry gave for it.
            headers: to send besides the login.
            body: the bytes to send, or the file of them.

        Raises:
            RefusalError: an answer that says no.
            requests.exceptions.RequestException: no answer.
            InsecureError: it would have to be sent where everybody on the way could read it.
        """
        url = urljoin(self._base, path)
        answer = self._followed(method, url, headers, body)
        if answer.status == _UNAUTHORIZED and self._is_own(answer.url) and self._log_in(answer):
            answer = self._followed(method, url, headers, body)
        return _granted(answer)

    def _followed(self, method: str, url: str, headers: Mapping[str, str], body: bytes | Path) -> Answer:
        followed = _READING_REDIRECTS if method in {"GET", "HEAD"} else _REDIRECTS
        answer = self._sent(method, url, headers, body)
        for _ in range(_MOST_REDIRECTS):
            if answer.status not in followed or "Location" not in answer.headers:
                break
            answer = self._sent(method, urljoin(answer.url, answer.headers["Location"]), headers, body)
        return answer

    def _sent(self, method: str, url: str, headers: Mapping[str, str], body: bytes | Path) -> Answer:
        parts = urlsplit(url)
        if self._asked.tls and parts.scheme != "https":
            raise InsecureError(f"wants an image sent to {parts.hostname} without TLS")
        login = {"Authorization": self._authorization} if self._authorization and self._is_own(url) else {}
        return self._exchange(method, url, {**headers, **login}, body)

    def _exchange(self, method: str, url: str, headers: Mapping[str, str], body: bytes | Path = b"") -> Answer:
        """One request to whoever is at an address."""
        patience = self._asked.patience_s
        within = math.inf if isinstance(body, Path) else patience
        limits = (patience, None if isinstance(body, Path) else patience)
        with self._line.held(self._halt, within), contextlib.ExitStack() as held:
            content = held.enter_context(body.open("rb")) if isinstance(body, Path) else body
            answer = held.enter_context(
                self._session.request(
                    method, url, headers=dict(headers), data=content, timeout=limits, proxies=self._proxies(url),
                    allow_redirects=False, stream=True,
                )
            )  # fmt: skip
            return Answer(url, answer.status_code, answer.reason or "", answer.headers, _content(answer))

    def _proxies(self, url: str) -> dict[str, str]:
        scheme = urlsplit(url).scheme
        proxy = self._asked.upstream.proxy_for(_target(url), tunnel=scheme == "https")
        return {} if proxy is None else {scheme: _address(proxy)}

    def _is_own(self, url: str) -> bool:
        """Whether it is the registry itself that is at an address."""
        return _target(url) == _target(self._base)

    def _log_in(self, answer: Answer) -> bool:
        """Do what a 401 asks for; whether there was something to do."""
        kind, _, parameters = answer.headers.get("WWW-Authenticate", "").partition(" ")
        wanted = parse_keqv_list([item for item in parse_http_list(parameters) if "=" in item])
        login = self._asked.login
        if login and not self._asked.tls:
            raise InsecureError("wants a login over plain HTTP")
        if kind.lower() == "basic" and login:
            given = _basic(login)
        elif kind.lower() == "bearer" and "realm" in wanted:
            given = f"Bearer {self._token(wanted)}"
        else:
            return False
        changed, self._authorization = given != self._authorization, given
        return changed

    def _token(self, wanted: Mapping[str, str]) -> str:
        realm, login = urlsplit(wanted["realm"]), self._asked.login
        if login and realm.scheme != "https":
            raise InsecureError(f"wants its login sent to {realm.hostname} without TLS")
        query = urlencode({name: wanted[name] for name in ("service", "scope") if name in wanted})
        url = realm._replace(query="&".join(filter(None, (realm.query, query)))).geturl()
        said = _granted(self._exchange("GET", url, _as(login))).said()
        token = (said.get("token") or said.get("access_token")) if isinstance(said, dict) else None
        if not token:
            raise ValueError(f"{realm.hostname} gives no token")
        return str(token)


def _granted(answer: Answer) -> Answer:
    if answer.status // 100 != 2:
        raise RefusalError(answer)
    return answer


def _content(answer: Response) -> bytes:
    content = bytearray()
    for chunk in answer.iter_content(_CHUNK):
        content += chunk
        if len(content) > _LONGEST_ANSWER:
            raise ContentDecodingError(f"its answer is longer than {_LONGEST_ANSWER:,} bytes")
    return bytes(content)


def _target(url: str) -> Target:
    parts = urlsplit(url)
    try:
        return Target.of(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    except ValueError as error:
        raise ValueError(f"the address {url!r} {error}") from error


def _as(login: Login | None) -> dict[str, str]:
    return {"Authorization": _basic(login)} if login else {}


def _basic(login: Login) -> str:
    return f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"


def _address(proxy: SiteProxy) -> str:
    user, _, password = proxy.login.partition(":")
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if proxy.login else ""
    return f"{'https' if proxy.tls else 'http'}://{login}{proxy.host}:{proxy.port}"
