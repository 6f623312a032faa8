"""Images as files, made here without a builder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest_of(content: bytes) -> str:
    """What content is named by."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def add_blob(layout: Path, content: bytes) -> str:
    """Put content into a layout; its digest."""
    digest = digest_of(content)
    blob_file(layout, digest).parent.mkdir(parents=True, exist_ok=True)
    blob_file(layout, digest).write_bytes(content)
    return digest


def blob_file(layout: Path, digest: str) -> Path:
    """Where a layout has a blob."""
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")


def add_image(layout: Path, *layers: bytes) -> str:
    """Put an image into a layout; its digest. A layer is any bytes: no registry looks inside."""
    config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}).encode()
    return add_manifest(layout, _named(layout, config, _CONFIG), [_named(layout, layer, _LAYER) for layer in layers])


def add_manifest(layout: Path, config: Any, layers: Any) -> str:
    """Put a manifest into a layout that names these; its digest."""
    manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": config, "layers": layers}
    return add_blob(layout, json.dumps(manifest).encode())


def _named(layout: Path, content: bytes, kind: str) -> dict[str, Any]:
    return {"mediaType": kind, "size": len(content), "digest": add_blob(layout, content)}
