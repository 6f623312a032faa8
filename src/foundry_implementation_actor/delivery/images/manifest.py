"""One question to a registry, over its HTTP interface: the digest of a tag's manifest."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from dxf import DXF, DXFBase
from dxf.exceptions import DXFAuthInsecureError, DXFError, DXFUnauthorizedError
from requests import Response
from requests.exceptions import HTTPError, RequestException, SSLError

from foundry_implementation_actor.delivery.images.login import Login
from foundry_implementation_actor.domain.error import ActorError, Code

_TIMEOUT_S = 20.0
_NOT_FOUND = 404
_FORBIDDEN = 403
# Docker's hub answers elsewhere than by its name.
_ANSWERS_AT = {"docker.io": "registry-1.docker.io"}


class Asked(NamedTuple):
    """What is asked for, where, and as whom; `certificates` are a file, a folder, or the library's own."""

    host: str
    repository: str
    tag: str
    tls: bool
    certificates: str | bool
    login: Login | None


def digest(asked: Asked) -> str:
    """The digest of a tag's manifest; empty when there is no such tag.

    Raises:
        ActorError: UNFIT when the registry does not answer, or refuses the login.
    """
    try:
        return _digest(_client(asked), asked.tag)
    except HTTPError as error:
        status = error.response.status_code
        if status == _NOT_FOUND:
            return ""
        raise (_closed(asked) if status == _FORBIDDEN else _unfit(asked, f"answers {status}")) from error
    except DXFUnauthorizedError as error:
        raise _closed(asked) from error
    except DXFAuthInsecureError as error:
        said = "wants a login over plain HTTP, where everybody on the way could read it"
        raise _unfit(asked, said, "give it TLS, and unset REGISTRY_TLS") from error
    except SSLError as error:
        hint = "set REGISTRY_TLS=off if it speaks plain HTTP, or SSL_CERT_FILE if its certificate is your own"
        raise _unfit(asked, f"cannot be spoken to with TLS: {_cause(error)}", hint) from error
    except (RequestException, DXFError, ValueError, KeyError) as error:
        raise _unfit(asked, f"does not answer as one: {_cause(error)}", "check IMAGE_REGISTRY") from error


def _client(asked: Asked) -> DXF:
    def log_in(client: DXFBase, response: Response) -> None:
        user, password = asked.login or (None, None)
        client.authenticate(user, password, response=response)

    return DXF(
        _ANSWERS_AT.get(asked.host, asked.host), asked.repository, log_in,
        insecure=not asked.tls, tlsverify=asked.certificates, timeout=_TIMEOUT_S,
    )  # fmt: skip


def _digest(client: DXF, tag: str) -> str:
    found, _ = client.head_manifest_and_response(tag)
    if found:
        return str(found)
    # Registries need not send the header.
    _, response = client.get_manifest_and_response(tag)
    return f"sha256:{hashlib.sha256(response.content).hexdigest()}"


def _closed(asked: Asked) -> ActorError:
    said = "refuses the login" if asked.login else "wants a login, and there is none for it"
    return _unfit(asked, said, f"run docker login {asked.host}, and name its directory in DOCKER_CONFIG")


def _unfit(asked: Asked, said: str, hint: str = "") -> ActorError:
    return ActorError(Code.UNFIT, f"the registry {said}", hint=hint, where=asked.host)


def _cause(error: Exception) -> str:
    """The innermost words of an error, which libraries wrap in their own."""
    while error.args and isinstance(error.args[0], Exception):
        error = error.args[0]
    return str(getattr(error, "reason", None) or error)
