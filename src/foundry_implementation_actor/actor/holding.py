"""How this actor's sessions are held, and what they are told of the network, from the settings."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.egress.proxy import HOST_NAME
from foundry_implementation_actor.egress.route import Upstream
from foundry_implementation_actor.sandbox.choose import choose
from foundry_implementation_actor.session.enclosure import Enclosure

_MODEL = "https://api.anthropic.com"
_PORTS = {"http": 80, "https": 443}


def enclosure(settings: Settings) -> Enclosure:
    """How sessions are held on this host; the sandbox is tried out.

    Raises:
        ActorError: UNFIT when no sandbox that the settings allow works here.
        SettingsError: the site's proxy is no address.
    """
    model = urlsplit(_model_address(settings) or _MODEL)
    hosts = settings.session_hosts
    if not hosts.is_open:
        hosts = hosts.and_also(model.hostname or "", model.port or _PORTS[model.scheme])
    hidden = (settings.state, settings.artifacts, *((Path(settings.docker_config),) if settings.docker_config else ()))
    return Enclosure(choose(settings.sandbox), hosts, Upstream.read(settings.passed_on), hidden)


def session_credentials(settings: Settings) -> dict[str, str]:
    """The model's variables for a session, and what it needs of the site's network.

    A session whose way out is the actor's proxy is not told of the site's, nor of an address on loopback,
    which would be its own.
    """
    model = settings.model_environment()
    if settings.session_hosts.is_open:
        passed = {name: value for name, value in settings.passed_on.items() if "@" not in value}
        return {**model, **passed, **_beside_the_proxy(passed)}
    certificates = {name: value for name, value in settings.passed_on.items() if not name.lower().endswith("proxy")}
    address = _model_address(settings)
    return {**model, **({"ANTHROPIC_BASE_URL": address} if address else {}), **certificates}


def _beside_the_proxy(passed: Mapping[str, str]) -> dict[str, str]:
    """What keeps a session from asking the site's proxy for loopback, where its own servers and its gate are."""
    if not any(name.lower() in {"http_proxy", "all_proxy"} for name in passed):
        return {}
    return {
        name: ",".join(filter(None, (passed.get(name), "localhost,127.0.0.1"))) for name in ("NO_PROXY", "no_proxy")
    }


def _model_address(settings: Settings) -> str:
    """Where a session finds the model, empty for the usual place: this host's loopback has a name of its own."""
    parts = urlsplit(settings.model_base_url)
    if not parts.hostname or not _is_loopback(parts.hostname) or settings.session_hosts.is_open:
        return settings.model_base_url
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit(parts._replace(netloc=f"{HOST_NAME}{port}"))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
