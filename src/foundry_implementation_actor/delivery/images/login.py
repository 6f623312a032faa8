"""The registry's login, from the `config.json` that Docker's own tools write in DOCKER_CONFIG."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from foundry_implementation_actor.domain.command import Command
from foundry_implementation_actor.domain.error import ActorError, Code
from foundry_implementation_actor.system.process import run

CONFIG = "config.json"
_HELPER_TIMEOUT_S = 20.0
_HUB = "docker.io"
# Docker's tools keep the login of their hub under the address of its first version.
_HUB_KEY = "https://index.docker.io/v1/"


class Login(NamedTuple):
    """A user of a registry and the password or token."""

    user: str
    password: str


def login(folder: str, host: str, environment: Mapping[str, str]) -> Login | None:
    """The login of a registry; None when the file has none for it, or there is no file.

    Args:
        folder: DOCKER_CONFIG, or empty.
        host: of the registry, with its port when it has one.
        environment: the whole one that a credential helper gets.

    Raises:
        ActorError: UNFIT when the file cannot be read, or its credential helper does not give a login.
    """
    config = read(folder)
    keys = (_HUB_KEY, _HUB) if host == _HUB else (host, f"https://{host}", f"http://{host}")
    helper = next((name for key in keys if (name := config.get("credHelpers", {}).get(key))), "")
    helper = helper or config.get("credsStore", "")
    if helper:
        return _asked(f"docker-credential-{helper}", keys[0], environment)
    entries = config.get("auths", {})
    return next((found for key in keys if key in entries and (found := _written(entries[key], folder))), None)


def logins(folder: str, host: str, environment: Mapping[str, str]) -> bytes:
    """A file for buildah with the logins that Docker's holds, and the one for `host` that a helper gives.

    Raises:
        ActorError: as `login`.
    """
    entries = read(folder).get("auths", {})
    found = login(folder, host, environment)
    if found:
        entries[host] = {"auth": base64.b64encode(f"{found.user}:{found.password}".encode()).decode()}
    return json.dumps({"auths": entries}).encode()


def passwords(folder: str) -> Iterator[str]:
    """Every password and token that the file itself holds, to be hidden wherever it would be shown."""
    entries = read(folder).get("auths", {})
    for entry in entries.values():
        found = _written(entry, folder)
        yield from (entry.get("auth", ""), entry.get("identitytoken", ""), found.password if found else "")


def read(folder: str) -> dict[str, Any]:
    """The file as it is; empty when there is none.

    Raises:
        ActorError: UNFIT when it cannot be read or is not what Docker's tools write.
    """
    place = Path(folder) / CONFIG
    try:
        config = json.loads(place.read_bytes()) if folder else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _unreadable(folder, str(error)) from error
    kinds = {"auths": dict, "credHelpers": dict, "credsStore": str}
    if not isinstance(config, dict) or any(not isinstance(config.get(key, of()), of) for key, of in kinds.items()):
        raise _unreadable(folder, "it is not what `docker login` writes")
    if any(not isinstance(entry, dict) for entry in config.get("auths", {}).values()):
        raise _unreadable(folder, "an entry of `auths` is not an object")
    return config


def _written(entry: Mapping[str, Any], folder: str) -> Login | None:
    if isinstance(entry.get("username"), str) and isinstance(entry.get("password"), str):
        return Login(entry["username"], entry["password"])
    if not entry.get("auth"):
        return None
    try:
        user, _, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
    except (binascii.Error, TypeError, ValueError) as error:
        raise _unreadable(folder, "an `auth` is not base64 of user:password") from error
    return Login(user, password.rstrip("\0"))


def _asked(program: str, host: str, environment: Mapping[str, str]) -> Login | None:
    """What a credential helper answers, by the protocol that Docker's tools speak with it."""
    done = run(Command((program, "get"), Path("/"), environment, _HELPER_TIMEOUT_S, stdin=host.encode()))
    if not done.ok:
        if "credentials not found" in done.text:
            return None
        raise ActorError(Code.UNFIT, f"it gave no login for {host}", hint="log in again", where=program)
    try:
        said = json.loads(done.stdout)
        return Login(said["Username"], said["Secret"])
    except (ValueError, TypeError, KeyError) as error:
        raise ActorError(Code.UNFIT, "its answer is not a login", hint="log in again", where=program) from error


def _unreadable(folder: str, why: str) -> ActorError:
    said = f"the registry's login cannot be read: {why}"
    return ActorError(Code.UNFIT, said, hint="mend the file or DOCKER_CONFIG", where=str(Path(folder) / CONFIG))
