"""The way into a registry: one repository of it, its login sent only where and how it may be."""

from __future__ import annotations

import base64
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import parse_http_list, parse_keqv_list

from requests import Response, Session
from requests.auth import HTTPBasicAuth

from foundry_implementation_actor.delivery.images.asked import Asked
from foundry_implementation_actor.egress.allowed import Target
from foundry_implementation_actor.egress.route import SiteProxy

_TIMEOUT_S = 20.0
_UNAUTHORIZED = 401
# Docker's hub answers elsewhere than by its name.
_ANSWERS_AT = {"docker.io": "registry-1.docker.io"}


class InsecureError(Exception):
    """A registry wants something sent that everybody on the way could read."""


class RegistryDoor:
    """Requests to one repository of a registry, while it is open.

    Nothing of the host configures it: no `.netrc`, and only those proxies that are named.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._scheme = "https" if asked.tls else "http"
        self._host = _ANSWERS_AT.get(asked.host, asked.host)
        self._session = Session()
        self._session.trust_env = False
        self._session.verify = asked.certificates
        self._authorization = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._session.close()

    def ask(self, method: str, path: str, **what: Any) -> Response:
        """The answer to a request, redirects followed and logged in where that is asked for.

        Args:
            method: of HTTP.
            path: below the repository, or a whole address that the registry gave for it.
            what: as `requests` takes it.

        Raises:
            requests.exceptions.RequestException: no answer, or one that says no.
            InsecureError: it would have to be sent where everybody on the way could read it.
        """
        url = urljoin(f"{self._scheme}://{self._host}/v2/{self._asked.repository}/", path)
        answer = self._send(method, url, **what)
        if answer.status_code == _UNAUTHORIZED and self._log_in(answer):
            if "data" in what and hasattr(what["data"], "seek"):
                what["data"].seek(0)
            answer = self._send(method, url, **what)
        answer.raise_for_status()
        return answer

    def _send(self, method: str, url: str, **what: Any) -> Response:
        parts = urlsplit(url)
        if self._asked.tls and parts.scheme != "https":
            raise InsecureError(f"wants an image sent to {parts.netloc} without TLS")
        headers = dict(what.pop("headers", {}))
        if self._authorization and parts.netloc == self._host:
            headers["Authorization"] = self._authorization
        return self._request(method, url, headers=headers, **what)

    def _request(self, method: str, url: str, **what: Any) -> Response:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        target = Target(parts.hostname or "", parts.port or (443 if secure else 80))
        proxy = self._asked.upstream.proxy_for(target, tunnel=secure)
        proxies = {} if proxy is None else {parts.scheme: _address(proxy)}
        return self._session.request(method, url, timeout=_TIMEOUT_S, proxies=proxies, **what)

    def _log_in(self, answer: Response) -> bool:
        """Do what a 401 asks for; whether there was something to do."""
        kind, _, parameters = answer.headers.get("WWW-Authenticate", "").partition(" ")
        wanted = parse_keqv_list([item for item in parse_http_list(parameters) if "=" in item])
        login = self._asked.login
        if login and not self._asked.tls:
            raise InsecureError("wants a login over plain HTTP")
        if kind.lower() == "basic" and login:
            given = f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"
        elif kind.lower() == "bearer" and "realm" in wanted:
            given = f"Bearer {self._token(wanted)}"
        else:
            return False
        changed, self._authorization = given != self._authorization, given
        return changed

    def _token(self, wanted: dict[str, str]) -> str:
        realm, login = wanted.pop("realm"), self._asked.login
        parts = urlsplit(realm)
        if login and parts.scheme != "https":
            raise InsecureError(f"wants its login sent to {parts.netloc} without TLS")
        query = {name: text for name, text in wanted.items() if name in {"service", "scope"}}
        auth = HTTPBasicAuth(*login) if login else None
        answer = self._request("GET", realm, params=query, auth=auth)
        answer.raise_for_status()
        said = answer.json()
        return str(said.get("token") or said["access_token"])


def _address(proxy: SiteProxy) -> str:
    user, _, password = proxy.login.partition(":")
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if proxy.login else ""
    return f"{'https' if proxy.tls else 'http'}://{login}{proxy.host}:{proxy.port}"
