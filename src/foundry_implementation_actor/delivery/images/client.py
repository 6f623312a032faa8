"""What is said to a registry over its HTTP interface: which digest a tag has, and here is an image."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator

from dxf import DXF, DXFBase
from dxf.exceptions import DXFAuthInsecureError, DXFError, DXFUnauthorizedError
from requests import Response
from requests.exceptions import HTTPError, RequestException, SSLError

from foundry_implementation_actor.delivery.images.asked import Asked
from foundry_implementation_actor.delivery.images.layout import Packed
from foundry_implementation_actor.domain.error import ActorError, Code

_TIMEOUT_S = 20.0
_TRIES = 2
_NOT_FOUND = 404
_FORBIDDEN = 403
# Docker's hub answers elsewhere than by its name.
_ANSWERS_AT = {"docker.io": "registry-1.docker.io"}


def digest(asked: Asked) -> str:
    """The digest of a tag's manifest; empty when there is no such tag.

    Raises:
        ActorError: UNFIT when the registry does not answer, or refuses the login.
    """
    with _speaking(asked) as client:
        try:
            return _digest(client, asked.tag)
        except HTTPError as error:
            if error.response.status_code == _NOT_FOUND:
                return ""
            raise


def send(asked: Asked, packed: Packed, halt: Callable[[], None]) -> None:
    """Upload what of an image the registry has not yet, and name it by the tag last of all.

    A line that breaks is tried once more; what arrived before is not sent again.

    Args:
        asked: where to.
        packed: the image.
        halt: called all the time while it is sent; raises what is to end it.

    Raises:
        ActorError: UNFIT when the registry does not take it, and whatever `halt` raises.
    """
    with _speaking(asked) as client:
        for left in reversed(range(_TRIES)):
            try:
                _send(client, asked.tag, packed, halt)
            except HTTPError:
                raise
            except RequestException:
                if not left:
                    raise
            else:
                return


def _send(client: DXF, tag: str, packed: Packed, halt: Callable[[], None]) -> None:
    for blob in packed.blobs:
        halt()
        if client.push_blob(str(blob.path), lambda *_: halt()) != blob.digest:
            raise ValueError(f"{blob.digest} is not what was packed")
    client.set_manifest(tag, packed.manifest)


@contextlib.contextmanager
def _speaking(asked: Asked) -> Iterator[DXF]:
    """A client, and every way in which it can fail in words."""

    def log_in(client: DXFBase, response: Response) -> None:
        user, password = asked.login or (None, None)
        client.authenticate(user, password, response=response)

    try:
        with DXF(
            _ANSWERS_AT.get(asked.host, asked.host), asked.repository, log_in,
            insecure=not asked.tls, tlsverify=asked.certificates, timeout=_TIMEOUT_S,
        ) as client:  # fmt: skip
            yield client
    except HTTPError as error:
        status = error.response.status_code
        raise (_closed(asked) if status == _FORBIDDEN else _unfit(asked, f"answers {_said(error.response)}")) from error
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


def _said(response: Response) -> str:
    """The status of an answer, and the message that the interface has it carry."""
    status = f"{response.status_code} {response.reason}".strip()
    try:
        return f"{status}: {response.json()['errors'][0]['message']}"
    except (ValueError, LookupError, TypeError):
        return status


def _cause(error: Exception) -> str:
    """The innermost words of an error, which libraries wrap in their own."""
    while error.args and isinstance(error.args[0], Exception):
        error = error.args[0]
    return str(getattr(error, "reason", None) or error)
