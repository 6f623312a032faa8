"""What is said to a registry over its HTTP interface: which digest a tag has, and here is an image.

The rules are those of the OCI distribution specification.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from urllib.parse import urlencode, urljoin, urlsplit

from requests.exceptions import RequestException, SSLError

from foundry_implementation_actor.delivery.images.asked import Asked
from foundry_implementation_actor.delivery.images.door import Answer, InsecureError, RefusalError, RegistryDoor
from foundry_implementation_actor.delivery.images.layout import DIGEST, Blob, Packed
from foundry_implementation_actor.domain.error import ActorError, Code

_TRIES = 2
_NOT_FOUND = 404
_NO_ENTRY = frozenset({401, 403})
_NAMED = "Docker-Content-Digest"
_LONGEST_SAID = 300
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
        halt: called all the time while it is sent, by more than one thread; raises what is to end it.

    Raises:
        ActorError: UNFIT when the registry does not take it, and whatever `halt` raises.
    """
    with _speaking(asked, halt) as door:
        for left in reversed(range(_TRIES)):
            try:
                for blob in packed.blobs:
                    halt()
                    _upload(door, blob)
                door.ask("PUT", f"manifests/{asked.tag}", {"Content-Type": packed.kind}, packed.manifest.encode())
            except RequestException:
                if not left:
                    raise
            else:
                return


def _found(door: RegistryDoor, path: str) -> str:
    """The digest of what is there; empty when nothing is."""
    headers = {"Accept": _KINDS}
    try:
        named = door.ask("HEAD", path, headers).headers.get(_NAMED, "")
        # Registries need not send the header.
        return named if DIGEST.fullmatch(named) else _hashed(door.ask("GET", path, headers))
    except RefusalError as error:
        if error.answer.status == _NOT_FOUND:
            return ""
        raise


def _hashed(answer: Answer) -> str:
    with contextlib.suppress(ValueError, TypeError, LookupError):
        if answer.said()["schemaVersion"]:
            return f"sha256:{hashlib.sha256(answer.content).hexdigest()}"
    raise ValueError("what it has there is no image")


def _upload(door: RegistryDoor, blob: Blob) -> None:
    if _has(door, blob):
        return
    begun = door.ask("POST", "blobs/uploads/")
    if "Location" not in begun.headers:
        raise ValueError("it does not say where to upload to")
    there = urlsplit(urljoin(begun.url, begun.headers["Location"]))
    # The query is the registry's own, and may be signed.
    query = "&".join(filter(None, (there.query, urlencode({"digest": blob.digest}))))
    headers = {"Content-Type": "application/octet-stream"}
    door.ask("PUT", there._replace(query=query).geturl(), headers, blob.path)


def _has(door: RegistryDoor, blob: Blob) -> bool:
    """Whether a registry has a blob. Any server can say yes to a question; one that means it names or measures it."""
    try:
        headers = door.ask("HEAD", f"blobs/{blob.digest}").headers
    except RefusalError as error:
        if error.answer.status == _NOT_FOUND:
            return False
        raise
    named = headers.get(_NAMED)
    return named == blob.digest if named else headers.get("Content-Length") == str(blob.path.stat().st_size)


@contextlib.contextmanager
def _speaking(asked: Asked, halt: Callable[[], None] = lambda: None) -> Iterator[RegistryDoor]:
    """A way in, and every way in which that can fail in words."""
    try:
        with RegistryDoor(asked, halt) as door:
            yield door
    except RefusalError as error:
        said = _said(error.answer)
        if error.answer.status in _NO_ENTRY:
            told = f"refuses the login: {said}" if asked.login else "wants a login, and there is none for it"
            hint = f"run docker login {asked.host}, and name its directory in DOCKER_CONFIG"
            raise _unfit(asked, told, hint) from error
        raise _unfit(asked, f"answers {said}") from error
    except InsecureError as error:
        raise _unfit(asked, f"{error}, where everybody on the way could read it", "give it TLS") from error
    except SSLError as error:
        hint = "set REGISTRY_TLS=off if it speaks plain HTTP, or SSL_CERT_FILE if its certificate is your own"
        raise _unfit(asked, f"cannot be spoken to with TLS: {_cause(error)}", hint) from error
    except (RequestException, ValueError, LookupError) as error:
        raise _unfit(asked, f"does not answer as one: {_cause(error)}", "check IMAGE_REGISTRY") from error


def _unfit(asked: Asked, said: str, hint: str = "") -> ActorError:
    return ActorError(Code.UNFIT, f"the registry {said}", hint=hint, where=asked.host)


def _said(answer: Answer) -> str:
    """The status of an answer, and the message that the interface has it carry."""
    status = f"{answer.status} {answer.reason}".strip()
    try:
        return f"{status}: {answer.said()['errors'][0]['message']}"[:_LONGEST_SAID]
    except (ValueError, LookupError, TypeError):
        return status


def _cause(error: BaseException) -> str:
    """The innermost words of an error, which libraries wrap in their own."""
    while inner := [one for one in (getattr(error, "reason", None), *error.args) if isinstance(one, Exception)]:
        error = inner[0]
    return str(error)
