"""An image as files, in an OCI image layout: read with care, since a repository's code ran beside it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from foundry_implementation_actor.domain.error import ActorError, Code

DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
"""What blobs and manifests are named by."""

_KIND = re.compile(r"[a-z]+/[a-z0-9.+-]+")
_LONGEST_MANIFEST = 4 * 1024 * 1024


class Blob(NamedTuple):
    """One file of an image, and its name by content."""

    path: Path
    digest: str


class Packed(NamedTuple):
    """An image: its manifest, of which kind that is, and the blobs that it names, in order."""

    manifest: str
    kind: str
    blobs: tuple[Blob, ...]


def read_layout(folder: Path, digest: str) -> Packed:
    """The image of this digest in a layout.

    Raises:
        ActorError: UNFIT when it is not there whole, or a link stands in the place of a file of it.
    """
    try:
        content = _manifest(_file(folder, digest), digest)
        manifest = json.loads(content)
        names = [entry["digest"] for entry in (manifest["config"], *manifest["layers"])]
        return Packed(content, _kind(manifest), tuple(Blob(_file(folder, name), name) for name in names))
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise ActorError(Code.UNFIT, f"the packed image cannot be read: {error}") from error


def _manifest(path: Path, digest: str) -> str:
    with path.open("rb") as file:
        content = file.read(_LONGEST_MANIFEST)
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
        raise ValueError(f"the manifest is not {digest}")
    return content.decode()


def _kind(manifest: Mapping[str, Any]) -> str:
    if not _KIND.fullmatch(manifest["mediaType"]):
        raise ValueError(f"{manifest['mediaType']!r} is no kind of manifest")
    return str(manifest["mediaType"])


def _file(folder: Path, digest: str) -> Path:
    found = DIGEST.fullmatch(digest)
    if not found:
        raise ValueError(f"{digest!r} is no digest")
    path = folder.parent.resolve() / folder.name / "blobs" / "sha256" / found[1]
    if path.resolve() != path or not path.is_file():
        raise ValueError(f"{digest} is not there, or a link stands for it")
    return path
