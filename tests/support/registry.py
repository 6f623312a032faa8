"""The registry of Debian's `docker-registry` on loopback, in a directory: with or without TLS and a login."""

from __future__ import annotations

import base64
import gzip
import hashlib
import http.client
import io
import json
import re
import shutil
import ssl
import stat
import subprocess
import tarfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

USER = "carrier"
PASSWORD = "pw-5c1e0b7d42aa"

# PASSWORD for USER as bcrypt, the one hash that it takes.
_HTPASSWD = f"{USER}:$2b$04$abcdefghijklmnopqrstuut9VqGeTVU1YTi9hD6eC7kUKgd7RPowe\n"
_LISTENS = re.compile(r"listening on (127\.0\.0\.1:\d+)")
_REQUEST = re.compile(r'"([A-Z]+ \S+) HTTP/1\.1" (\d+)')
_TYPES = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")

Files = Mapping[str, tuple[str, bytes]]


@dataclass(frozen=True)
class Pulled:
    """An image as a registry gives it: its digest, its configuration, and what its layers unpack to.

    `files` has the mode, as git writes it, and the content of each file and link.
    """

    digest: str
    config: Any
    files: Files

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, by their names."""
        return dict(self.config["config"]["Labels"])


class LoopbackRegistry:
    """A registry of images while it is open; `host` is where, without a scheme.

    Args:
        folder: a directory for what it keeps.
        login: whether it wants USER and PASSWORD.
        certificate: the folder of a certificate of `make_certificate`; None is plain HTTP.
        room: how many bytes it has to keep images in; 0 is as many as the disk has.
        tokens: the settings of a server whose tokens it wants; None is no such server.
    """

    def __init__(
        self,
        folder: Path,
        *,
        login: bool = False,
        certificate: Path | None = None,
        room: int = 0,
        tokens: Mapping[str, Any] | None = None,
    ) -> None:
        if not shutil.which("docker-registry"):
            pytest.skip("no docker-registry; run `make test`, or install it (Debian: docker-registry)")
        folder.mkdir(parents=True)
        self._certificate = certificate
        self._login = login
        self._requests = folder / "requests"
        self._file = folder / "registry.yml"
        self._config = self._configured(folder)
        if tokens:
            self._config["auth"] = {"token": dict(tokens)}
        self.host = "127.0.0.1:0"
        images = folder / "images"
        images.mkdir()
        small = ["bwrap", "--die-with-parent", "--dev-bind", "/", "/", "--size", str(room), "--tmpfs", str(images)]
        self._argv = [*(small if room else []), "docker-registry", "serve", str(self._file)]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Come up, at the same port as before."""
        self._config["http"]["addr"] = self.host
        self._file.write_text(json.dumps(self._config))  # which is YAML too
        with self._requests.open("a") as requests:
            self._process = subprocess.Popen(self._argv, stdout=requests, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr
        found = next(filter(None, map(_LISTENS.search, self._process.stderr)), None)
        assert found, "the registry ended before it listened"
        self.host = found[1]
        # A pipe that nobody reads would fill, and the registry wait for ever.
        self._reader = threading.Thread(target=self._process.stderr.read, name="registry")
        self._reader.start()

    def stop(self) -> None:
        """Go down, with all connections."""
        self._process.terminate()
        self._process.wait(30)
        self._reader.join(30)
        assert self._process.stderr
        self._process.stderr.close()

    def tags(self, repository: str) -> list[str]:
        """The tags of a repository; none when there is no such repository."""
        tags: list[str] = json.loads(self._get(f"/v2/{repository}/tags/list")).get("tags") or []
        return tags

    def pull(self, ref: str) -> Pulled:
        """What a client gets for a ref of this registry."""
        repository, _, tag = ref.removeprefix(f"{self.host}/").rpartition(":")
        raw = self._get(f"/v2/{repository}/manifests/{tag}")
        manifest = json.loads(raw)
        blobs = [self._blob(repository, one["digest"]) for one in (manifest["config"], *manifest["layers"])]
        files: dict[str, tuple[str, bytes]] = {}
        for layer in blobs[1:]:
            files |= unpacked(gzip.decompress(layer))
        return Pulled(_digest(raw), json.loads(blobs[0]), files)

    def delete(self, repository: str, digest: str) -> None:
        """Take an image away, as its owner would."""
        self._get(f"/v2/{repository}/manifests/{digest}", "DELETE")

    def asked(self) -> list[str]:
        """What clients have asked so far, in order: method, path and status in a line."""
        found = _REQUEST.findall(self._requests.read_text())
        return [f"{asked} {status}" for asked, status in found]

    def _blob(self, repository: str, digest: str) -> bytes:
        raw = self._get(f"/v2/{repository}/blobs/{digest}")
        assert _digest(raw) == digest
        return raw

    def _get(self, path: str, method: str = "GET") -> bytes:
        connection = http.client.HTTPConnection(self.host, timeout=10)
        if self._certificate:
            trusted = ssl.create_default_context(cafile=str(self._certificate / "cert.pem"))
            connection = http.client.HTTPSConnection(self.host, timeout=10, context=trusted)
        told = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"Basic {told}"} if self._login else {}
        connection.request(method, path, headers={"Accept": ", ".join(_TYPES), **headers})
        raw = connection.getresponse().read()
        connection.close()
        return raw

    def _configured(self, folder: Path) -> dict[str, Any]:
        config: dict[str, Any] = {
            "version": "0.1",
            "storage": {"filesystem": {"rootdirectory": str(folder / "images")}, "delete": {"enabled": True}},
            "http": {},
        }
        if self._certificate:
            files = {"certificate": "cert.pem", "key": "key.pem"}
            config["http"]["tls"] = {name: str(self._certificate / file) for name, file in files.items()}
        if self._login:
            (folder / "htpasswd").write_text(_HTPASSWD)
            config["auth"] = {"htpasswd": {"realm": "images", "path": str(folder / "htpasswd")}}
        return config


def make_certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that only its own file `cert.pem` vouches for; the folder."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl; install it (Debian: openssl)")
    folder.mkdir(parents=True)
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    whose = ("-subj", "/CN=registry", "-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"))
    subprocess.run(["openssl", "req", "-x509", *kind, *whose, *files], check=True, capture_output=True, timeout=60)
    return folder


def write_login(folder: Path, host: str, password: str = PASSWORD) -> Path:
    """A folder for DOCKER_CONFIG as `docker login` would leave it; the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    told = base64.b64encode(f"{USER}:{password}".encode()).decode()
    (folder / "config.json").write_text(json.dumps({"auths": {host: {"auth": told}}}))
    return folder


def _digest(raw: bytes) -> str:
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"


def unpacked(archive: bytes) -> Files:
    """Each file and link in a tar archive: its mode, as git writes it, and its content."""
    files: dict[str, tuple[str, bytes]] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for member in members:
            content = members.extractfile(member) if member.isfile() else None
            if content:
                files[member.name] = (f"{stat.S_IFREG | member.mode:06o}", content.read())
            elif member.issym():
                files[member.name] = ("120000", member.linkname.encode("utf-8", "surrogateescape"))
            else:
                assert member.isdir(), member.name
    return files
