"""An image as files that somebody else's code lay beside: what is read of it, and what a registry makes of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundry_implementation_actor.delivery.images.layout import read_layout
from foundry_implementation_actor.delivery.images.registry import Registry
from foundry_implementation_actor.domain.error import ActorError, Code
from support.packed import add_blob, add_image, add_manifest, blob_file, digest_of
from support.registry import LoopbackRegistry

LAYERS = (b"first layer", b"second layer")


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    return tmp_path / "layout"


def refused(layout: Path, digest: str) -> str:
    with pytest.raises(ActorError, match="the packed image cannot be read: ") as raised:
        read_layout(layout, digest)
    assert raised.value.code is Code.UNFIT
    return raised.value.message


def test_an_image_has_its_manifest_its_kind_and_its_blobs_in_order(layout: Path) -> None:
    packed = read_layout(layout, add_image(layout, *LAYERS))
    assert json.loads(packed.manifest)["mediaType"] == packed.kind == "application/vnd.oci.image.manifest.v1+json"
    assert [blob.path.read_bytes() for blob in packed.blobs[1:]] == list(LAYERS)
    assert [digest_of(blob.path.read_bytes()) for blob in packed.blobs] == [blob.digest for blob in packed.blobs]


def moved(layout: Path, place: Path) -> None:
    """Put what is at a place elsewhere, and a link in its stead."""
    elsewhere = layout.parent / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)


PLACES: dict[str, Callable[[Path, str], Path]] = {
    "the manifest": blob_file,
    "a layer": lambda layout, _: blob_file(layout, digest_of(LAYERS[1])),
    "the blobs of a kind": lambda layout, _: layout / "blobs" / "sha256",
    "the blobs": lambda layout, _: layout / "blobs",
    "the layout": lambda layout, _: layout,
}


@pytest.mark.parametrize("what", PLACES)
def test_no_link_is_followed(layout: Path, what: str) -> None:
    digest = add_image(layout, *LAYERS)
    moved(layout, PLACES[what](layout, digest))
    assert "is not there, or a link stands for it" in refused(layout, digest)


def test_a_link_above_the_layout_is_the_operators_own(tmp_path: Path) -> None:
    digest = add_image(tmp_path / "real" / "layout", *LAYERS)
    (tmp_path / "linked").symlink_to("real")
    assert len(read_layout(tmp_path / "linked" / "layout", digest).blobs) == 3


@pytest.mark.parametrize("what", ["a layer", "the manifest"])
def test_a_file_that_is_missing_is_named(layout: Path, what: str) -> None:
    digest = add_image(layout, *LAYERS)
    missing = PLACES[what](layout, digest)
    missing.unlink()
    assert f"sha256:{missing.name} is not there" in refused(layout, digest)
    missing.mkdir()
    assert f"sha256:{missing.name} is not there" in refused(layout, digest)


@pytest.mark.parametrize("change", [b"", b" ", b"{}", b"x" * 5_000_000])
def test_a_manifest_that_is_not_what_it_is_named_by_is_refused(layout: Path, change: bytes) -> None:
    digest = add_image(layout, *LAYERS)
    file = blob_file(layout, digest)
    file.write_bytes(file.read_bytes() + change if change == b" " else change)
    assert f"the manifest is not {digest}" in refused(layout, digest)


@pytest.mark.parametrize("name", ["", "sha256:", "sha256:../../../secret", "sha512:" + "0" * 128, "sha256:" + "A" * 64])
def test_a_name_that_is_no_digest_leads_nowhere(layout: Path, name: str) -> None:
    (layout.parent / "secret").write_text("a secret")
    assert f"{name!r} is no digest" in refused(layout, name)
    assert f"{name!r} is no digest" in refused(layout, add_manifest(layout, {"digest": name}, []))
    config = {"digest": add_blob(layout, b"{}")}
    assert f"{name!r} is no digest" in refused(layout, add_manifest(layout, config, [{"digest": name}]))


MANIFESTS: dict[str, bytes] = {
    "no JSON": b"{",
    "no UTF-8": b'{"\xff": 1}',
    "a list": b"[]",
    "a number": b"1",
    "nothing in it": b"{}",
    "no kind": b'{"config": {"digest": "CONFIG"}, "layers": []}',
    "a kind that is none": b'{"mediaType": null, "config": {"digest": "CONFIG"}, "layers": []}',
    "a kind of two lines": b'{"mediaType": "a/b\\nc", "config": {"digest": "CONFIG"}, "layers": []}',
    "no layers": b'{"mediaType": "a/b", "config": {"digest": "CONFIG"}}',
    "layers that are none": b'{"mediaType": "a/b", "config": {"digest": "CONFIG"}, "layers": null}',
    "a number for a digest": b'{"mediaType": "a/b", "config": {"digest": 1}, "layers": []}',
    "an index": b'{"mediaType": "a/b", "manifests": [{"digest": "CONFIG"}]}',
    "a hundred thousand lists": b"[" * 100_000,
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_a_manifest_that_names_no_image_is_refused(layout: Path, what: str) -> None:
    content = MANIFESTS[what].replace(b"CONFIG", add_blob(layout, b"{}").encode())
    refused(layout, add_blob(layout, content))


_LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(digest_of(LAYERS[0]))
_KEYS = st.sampled_from(("config", "layers", "digest", "mediaType", "manifests"))
_JSON = st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4))
_KNOWN = st.just({"digest": digest_of(LAYERS[0])})


@given(config=_KNOWN | _JSON, layers=st.lists(_KNOWN | _JSON, max_size=2) | _JSON)
def test_whatever_a_manifest_names_only_blobs_of_the_layout_are_read(config: Any, layers: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        layout = Path(folder)
        add_blob(layout, LAYERS[0])
        digest = add_manifest(layout, config, layers)
        try:
            packed = read_layout(layout, digest)
        except ActorError:
            return  # and no other kind of error
        assert {blob.digest for blob in packed.blobs} <= {digest_of(LAYERS[0]), digest}


def test_a_registry_refuses_a_blob_that_is_not_what_it_is_named_by(tmp_path: Path, layout: Path) -> None:
    digest = add_image(layout, *LAYERS)
    blob_file(layout, digest_of(LAYERS[1])).write_bytes(b"another layer")
    packed = read_layout(layout, digest)
    with LoopbackRegistry(tmp_path / "registry") as registry:
        ref = f"{registry.host}/some/where:1"
        asker = Registry(registry.host, "", {}, tls=False)
        with pytest.raises(ActorError, match=r"answers 400 .*digest did not match"):
            asker.send(ref, packed, lambda: None)
        assert asker.digest(ref) == ""
