"""How this actor's sessions are held, and what they are told of the network, from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.egress.model import ADDRESS, Model
from foundry_implementation_actor.egress.route import Upstream
from foundry_implementation_actor.sandbox.choose import choose
from foundry_implementation_actor.session.enclosure import Enclosure


def enclosure(settings: Settings) -> Enclosure:
    """How sessions are held on this host; the sandbox is tried out.

    Raises:
        ActorError: UNFIT when no sandbox that the settings allow works here.
        SettingsError: the site's proxy is no address.
    """
    upstream = Upstream.read(settings.passed_on)
    return Enclosure(choose(settings.sandbox), settings.session_hosts, upstream, _model(settings), own_places(settings))


def own_places(settings: Settings) -> tuple[Path, ...]:
    """What belongs to the actor alone, and no code of a repository is to see."""
    logins = (Path(settings.docker_config),) if settings.docker_config else ()
    return (settings.state, settings.artifacts, *logins)


def session_network(settings: Settings) -> dict[str, str]:
    """What a session needs of the site's network; one whose way out is the actor's proxy is not told of the site's."""
    if settings.session_hosts.is_open:
        passed = {name: value for name, value in settings.passed_on.items() if "@" not in value}
        return {**passed, **_beside_the_proxy(passed)}
    return {name: value for name, value in settings.passed_on.items() if not name.lower().endswith("proxy")}


def _beside_the_proxy(passed: Mapping[str, str]) -> dict[str, str]:
    """What keeps a session from asking the site's proxy for loopback, where its own servers and its gate are."""
    if not any(name.lower() in {"http_proxy", "all_proxy"} for name in passed):
        return {}
    return {
        name: ",".join(filter(None, (passed.get(name), "localhost,127.0.0.1"))) for name in ("NO_PROXY", "no_proxy")
    }


def _model(settings: Settings) -> Model | None:
    """The model's service; None where sessions follow a script."""
    login = settings.model_login
    if settings.session_engine == "scripted" or not login:
        return None
    return Model(settings.model_base_url or ADDRESS, settings.model_credential, login)
