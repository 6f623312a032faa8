"""Puts an actor together: from a sidecar and the settings to everything that a run works with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from foundry_implementation_actor.actor.gated import gate_lacks, gate_root, make_pen
from foundry_implementation_actor.actor.holding import enclosure, session_network
from foundry_implementation_actor.actor.price_file import prices_in
from foundry_implementation_actor.actor.publishing import all_secrets, publisher
from foundry_implementation_actor.actor.script_file import script_in
from foundry_implementation_actor.actor.settings import Settings
from foundry_implementation_actor.domain.capability import Capability
from foundry_implementation_actor.domain.error import ActorError, Code, SettingsError
from foundry_implementation_actor.domain.run import Door
from foundry_implementation_actor.engines.claude_code import ClaudeCode
from foundry_implementation_actor.engines.port import Engine
from foundry_implementation_actor.engines.scripted import Scripted
from foundry_implementation_actor.judges.boundary import ChangeLimits
from foundry_implementation_actor.runs.workshop import PushRight, Workshop
from foundry_implementation_actor.system.git import Remote
from foundry_implementation_actor.system.journal import Journal, Sink, to_logging
from foundry_implementation_actor.system.process import Stop
from foundry_implementation_actor.system.release import version
from foundry_implementation_actor.system.secrets import finder, redactor
from foundry_implementation_actor.workspace.grounding import Fetcher

_HOME = "/nonexistent"


def workshop(
    capability: Capability, settings: Settings, claude_bin: str = "claude", sink: Sink = to_logging
) -> Workshop:
    """The means of one actor.

    Args:
        capability: what it serves.
        settings: what the operator set.
        claude_bin: the program of the claude-code engine, a name on PATH or a path.
        sink: where records go.

    Raises:
        SettingsError: GITHUB_TOKEN is missing although the forge is reached over HTTP, or the
            script of the scripted engine or the file of prices cannot be read, or nobody says of
            which app the gate is to be the only pen.
        ActorError: the script is no script.
    """
    if not settings.github_token and settings.git_base_url.startswith("http"):
        raise SettingsError(
            "GITHUB_TOKEN is not set", hint=f"give a token with contents:write on {capability.source_repo}"
        )
    prices = prices_in(settings.model_prices)
    secrets = all_secrets(settings)
    stop = Stop()
    environment = {"PATH": settings.path, **settings.passed_on}
    tools = {**environment, "HOME": _HOME, "LANG": "C.UTF-8", "GITHUB_TOKEN": settings.github_token}
    return Workshop(
        capability=capability,
        remote=Remote(f"{settings.git_base_url.rstrip('/')}/{capability.source_repo}.git", settings.github_token),
        state=settings.state,
        engine=_engine(settings, claude_bin),
        budgets={door: replace(settings.budget(door), prices=prices) for door in Door},
        artifacts=settings.artifacts,
        change_limits=ChangeLimits(settings.max_changed_files, settings.max_patch_bytes),
        clone_timeout_s=settings.clone_timeout_s,
        verify_timeout_s=settings.verify_timeout_s,
        environment=environment,
        fetcher=Fetcher(tools, settings.fetch_timeout_s, stop),
        session_network=session_network(settings),
        publisher=publisher(settings),
        make_pen=make_pen(settings, capability),
        gate_root=gate_root(settings, capability) or "",
        enclosure=cache(lambda: enclosure(settings)),
        engine_lacks=lambda: (*_engine_lacks(settings, claude_bin), *gate_lacks(settings, capability)),
        finds_secret=finder(secrets),
        journal=Journal(sink, redactor(secrets)),
        stop=stop,
        push_right=PushRight(),
        version=version(),
    )


def _engine(settings: Settings, claude_bin: str) -> Engine:
    if settings.session_engine == "claude-code":
        return ClaudeCode(claude_bin)
    assert settings.session_script is not None, "Settings.from_env refuses a scripted engine without a script"
    return Scripted(script_in(settings.session_script))


def _engine_lacks(settings: Settings, claude_bin: str) -> Iterator[ActorError]:
    if settings.session_engine != "claude-code":
        return
    if shutil.which(claude_bin, path=settings.path) is None:
        hint = "install it with: npm install -g @anthropic-ai/claude-code"
        yield ActorError(Code.UNFIT, f"the program {claude_bin!r} was not found", hint=hint)
    if not settings.model_credential:
        hint = "set CLAUDE_CODE_OAUTH_TOKEN (from: claude setup-token), or ANTHROPIC_API_KEY to be billed by use"
        yield ActorError(Code.UNFIT, "there is no login for the model", hint=hint)
