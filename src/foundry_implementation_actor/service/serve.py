"""The wiring of the service: settings, sidecar, cards, actor, and the port it listens on."""

from __future__ import annotations

import contextlib
import logging
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from foundry_implementation_actor.actor.boot import boot, cards_of
from foundry_implementation_actor.actor.engine import ClaudeCodeEngine
from foundry_implementation_actor.actor.publishing import all_secrets
from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.domain.error import ServeError
from foundry_implementation_actor.service.records import Records
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.system.install import install
from foundry_implementation_actor.system.journal import Journal
from foundry_implementation_actor.system.secrets import SECRET_VARIABLES, close_memory, redactor, scrub_environment

try:
    from foundry_implementation_actor.service.host import host, listen
    from foundry_implementation_actor.service.mailbox import AsgiMailbox
except ModuleNotFoundError as _missing:  # the HTTP server is an extra; the call below says so
    _MISSING = _missing.name
else:
    _MISSING = None

_PACKAGES = ("foundry-implementation-actor", "papeete-actor-synchronous-messaging", "papeete-version")


def serve(folder: str | Path = ".", port: int | None = None) -> None:
    """Answer the two doors over HTTP until SIGTERM or SIGINT.

    Settings come from the environment; the secrets among them are then removed from it. The cards
    beside the sidecar are used, or the definition's when there are none.

    Args:
        folder: the folder that holds the sidecar, or the sidecar itself.
        port: the port to listen on instead of `PORT`; 0 takes a free one, which `actor-started` names.

    Raises:
        SettingsError: an environment variable cannot be used.
        ConfigError: the sidecar cannot be used, or the cards beside it do not conform.
        ServeError: the port is taken, or the `serve` extra is not installed.
    """
    if _MISSING:
        said = f"the HTTP server is not installed (no module {_MISSING})"
        raise ServeError(said, hint=install("serve"))
    close_memory()
    settings = Settings.from_env()
    config = CapabilityConfig.load(folder)
    journal = Journal(redact=redactor(all_secrets(settings)))
    with _records_on_stdout():
        engine = ClaudeCodeEngine(config, **settings.engine_kwargs())
        mailbox = AsgiMailbox()
        with cards_of(config, Path(folder)) as cards:
            boot(cards, config, engine, mailbox)
        listening = listen(settings.host, settings.port if port is None else port)
        scrub_environment(SECRET_VARIABLES)
        host(
            mailbox,
            listening,
            journal,
            end_sessions=engine.stop,
            grace_s=settings.shutdown_grace_s,
            started=_started(config, settings),
            lacks=engine.lacks,
        )


def _started(config: CapabilityConfig, settings: Settings) -> dict[str, Any]:
    return {
        "capability": config.capability,
        "source_repo": config.source_repo,
        "git_base_url": settings.git_base_url,
        "session_engine": settings.session_engine,
        "model_credential": settings.model_credential or None,
        "image_builder": settings.builder,
        "image_registry": settings.image_registry or None,
        "build_network": settings.build_network,
        **settings.limits(),
        "versions": {name: version(name) for name in _PACKAGES} | {"python": platform.python_version()},
    }


@contextlib.contextmanager
def _records_on_stdout() -> Iterator[None]:
    logger = logging.getLogger("foundry_implementation_actor")
    before = (logger.level, logger.propagate)
    # Not through sys.stdout: a write that stalls would hold its lock, which the interpreter needs to end.
    lines = Records(sys.stdout.fileno()) if sys.stdout else logging.NullHandler()
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(lines)
        lines.close()
        logger.level, logger.propagate = before
