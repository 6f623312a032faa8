"""What is said to a registry over its HTTP interface: which digest a tag has, and here is an image.

The rules are those of the OCI distribution specification.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from requests import Response
from requests.exceptions import HTTPError, RequestException, SSLError

from foundry_implementation_actor.delivery.images.asked import Asked
from foundry_implementation_actor.delivery.images.door import InsecureError, RegistryDoor
from foundry_implementation_actor.delivery.images.layout import Blob, Packed
from foundry_implementation_actor.domain.error import ActorError, Code

_TRIES = 2
_NOT_FOUND = 404
_NO_ENTRY = frozenset({401, 403})
_OCI, _DOCKER = "application/vnd.oci.image", "application/vnd.docker.distribution.manifest"
_KINDS = f"{_OCI}.manifest.v1+json, {_OCI}.index.v1+json, {_DOCKER}.v2+json, {_DOCKER}.list.v2+json"


def digest(asked: Asked) -> str:
    """The digest of a tag's manifest; empty when there is no such tag.

    Raises:
        ActorError: UNFIT when the registry does not answer, or refuses the login.
    """
    with _speaking(asked) as door:
        return _found(door, f"manifests/{asked.tag}")


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
    with _speaking(asked) as door:
        for left in reversed(range(_TRIES)):
            try:
                for blob in packed.blobs:
                    _upload(door, blob, halt)
                headers = {"Content-Type": str(json.loads(packed.manifest)["mediaType"])}
                door.ask("PUT", f"manifests/{asked.tag}", data=packed.manifest.encode(), headers=headers)
            except HTTPError:
                raise
            except RequestException:
                if not left:
                    raise
            else:
                return


def _found(door: RegistryDoor, path: str) -> str:
    """The digest of what is there; empty when nothing is."""
    headers = {"Accept": _KINDS}
    try:
        answer = door.ask("HEAD", path, headers=headers)
        # Registries need not send the header.
        return answer.headers.get("Docker-Content-Digest") or _hashed(door.ask("GET", path, headers=headers))
    except HTTPError as error:
        if error.response.status_code == _NOT_FOUND:
            return ""
        raise


def _hashed(answer: Response) -> str:
    return f"sha256:{hashlib.sha256(answer.content).hexdigest()}"


def _upload(door: RegistryDoor, blob: Blob, halt: Callable[[], None]) -> None:
    halt()
    try:
        door.ask("HEAD", f"blobs/{blob.digest}")
    except HTTPError as error:
        if error.response.status_code != _NOT_FOUND:
            raise
    else:
        return
    there = urlsplit(door.ask("POST", "blobs/uploads/").headers["Location"])
    query = urlencode([*parse_qsl(there.query), ("digest", blob.digest)])
    with _Watched(blob.path, halt) as content:
        headers = {"Content-Type": "application/octet-stream"}
        door.ask("PUT", urlunsplit(there._replace(query=query)), data=content, headers=headers)


class _Watched(io.FileIO):
    """A file that calls something each time that some of it is read."""

    def __init__(self, path: object, halt: Callable[[], None]) -> None:
        super().__init__(str(path))
        self._halt = halt

    def read(self, size: int | None = -1, /) -> bytes:
        self._halt()
        return super().read(-1 if size is None else size) or b""


@contextlib.contextmanager
def _speaking(asked: Asked) -> Iterator[RegistryDoor]:
    """A way in, and every way in which that can fail in words."""
    try:
        with RegistryDoor(asked) as door:
            yield door
    except HTTPError as error:
        response = error.response
        if response.status_code in _NO_ENTRY:
            said = "refuses the login" if asked.login else "wants a login, and there is none for it"
            hint = f"run docker login {asked.host}, and name its directory in DOCKER_CONFIG"
            raise _unfit(asked, said, hint) from error
        raise _unfit(asked, f"answers {_said(response)}") from error
    except InsecureError as error:
        raise _unfit(asked, f"{error}, where everybody on the way could read it", "give it TLS") from error
    except SSLError as error:
        hint = "set REGISTRY_TLS=off if it speaks plain HTTP, or SSL_CERT_FILE if its certificate is your own"
        raise _unfit(asked, f"cannot be spoken to with TLS: {_cause(error)}", hint) from error
    except (RequestException, ValueError, LookupError) as error:
        raise _unfit(asked, f"does not answer as one: {_cause(error)}", "check IMAGE_REGISTRY") from error


def _unfit(asked: Asked, said: str, hint: str = "") -> ActorError:
    return ActorError(Code.UNFIT, f"the registry {said}", hint=hint, where=asked.host)


def _said(response: Response) -> str:
    """The status of an answer, and the message that the interface has it carry."""
    status = f"{response.status_code} {response.reason}".strip()
    try:
        return f"{status}: {response.json()['errors'][0]['message']}"
    except (ValueError, LookupError, TypeError):
        return status


def _cause(error: BaseException) -> str:
    """The innermost words of an error, which libraries wrap in their own."""
    while error.args and isinstance(error.args[0], Exception):
        error = error.args[0]
    return str(getattr(error, "reason", None) or error)
