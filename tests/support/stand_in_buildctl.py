"""A program in the place of `buildctl`, which no registry of packages here has: run as one, not imported.

It refuses whatever BuildKit's own would not take, notes how it was called in `desk`, beside its own folder, and packs
the context into an image, the same for the same order, which it pushes by `skopeo` if it is told to.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

DESK = Path(__file__).parent.parent / "desk"
REPEATED = {"--local", "--opt"}
FIELDS = {"type", "name", "push", "rewrite-timestamp", "registry.insecure"}
OPTIONS = ("build-arg:SOURCE_DATE_EPOCH", "force-network-mode", "label:")


def main(argv: list[str]) -> int:
    note(argv)
    if argv[:1] != ["build"]:
        return int(read("workers") or 0)
    flags = flags_of(argv[1:])
    fields = dict(field.split("=", 1) for field in next(csv.reader([flags["--output"]])))
    assert set(fields) <= FIELDS, fields
    assert flags["--frontend"] == "dockerfile.v0"
    assert all(name.startswith(OPTIONS) for name in flags["--opt"])
    assert Path(flags["--local"]["dockerfile"], "Dockerfile").is_file()
    name = fields["name"].rpartition("/")[2].partition(":")[0]
    for what in ("build", "push")[: 1 + (fields["push"] == "true")]:
        if name in read(f"refuse-{what}").split():
            sys.stderr.write(f"cannot {what} {name}\n")
            return 1
    with tempfile.TemporaryDirectory() as place:
        digest = pack(Path(place), Path(flags["--local"]["context"]), flags["--opt"], read("salt"))
        if fields["push"] == "true":
            plain = ["--dest-tls-verify=false"] if fields.get("registry.insecure") == "true" else []
            ref = fields["name"]
            subprocess.run(["skopeo", "copy", "--quiet", *plain, f"oci:{place}", f"docker://{ref}"], check=True)
    Path(flags["--metadata-file"]).write_text(json.dumps({"containerimage.digest": digest}))
    return 0


def note(argv: list[str]) -> None:
    around = Path().rglob("*") if argv[0] == "build" else ()
    files = [str(path) for path in around if path.is_file() and path.name != ".git"]
    price = Path("backend/price.py")
    call = {
        "argv": argv, "env": dict(os.environ), "cwd": str(Path.cwd()), "files": files,
        "price": price.read_text() if price.is_file() else "",
    }  # fmt: skip
    with tempfile.NamedTemporaryFile("w", dir=DESK, prefix="call.", suffix=".json", delete=False) as file:
        json.dump(call, file)


def flags_of(argv: list[str]) -> dict[str, Any]:
    flags: dict[str, Any] = {name: {} for name in REPEATED}
    for name, value in zip(argv[::2], argv[1::2], strict=True):
        if name in REPEATED:
            flags[name].update([value.split("=", 1)])
        else:
            assert name not in flags, name
            flags[name] = value
    return flags


def pack(place: Path, context: Path, options: dict[str, str], salt: str) -> str:
    """An OCI image layout of one layer; its digest."""
    epoch = int(options["build-arg:SOURCE_DATE_EPOCH"])
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as layer:
        for path in sorted(path for path in context.rglob("*") if path.is_file()):
            member = layer.gettarinfo(path, str(path.relative_to(context)))
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            with path.open("rb") as file:
                layer.addfile(member, file)
    packed = gzip.compress(raw.getvalue(), mtime=0)
    labels = {name.removeprefix("label:"): text for name, text in options.items() if name.startswith("label:")}
    config = {
        "architecture": "amd64", "os": "linux", "config": {"Labels": labels, "Env": [f"SALT={salt}"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(raw.getvalue()).hexdigest()}"]},
    }  # fmt: skip
    kind = "application/vnd.oci.image"
    manifest = {
        "schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json",
        "config": blob(place, json.dumps(config).encode(), f"{kind}.config.v1+json"),
        "layers": [blob(place, packed, f"{kind}.layer.v1.tar+gzip")],
    }  # fmt: skip
    described = blob(place, json.dumps(manifest).encode(), f"{kind}.manifest.v1+json")
    (place / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (place / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [described]}))
    return str(described["digest"])


def blob(place: Path, content: bytes, kind: str) -> dict[str, Any]:
    name = hashlib.sha256(content).hexdigest()
    folder = place / "blobs" / "sha256"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return {"mediaType": kind, "digest": f"sha256:{name}", "size": len(content)}


def read(name: str) -> str:
    place = DESK / name
    return place.read_text() if place.is_file() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
