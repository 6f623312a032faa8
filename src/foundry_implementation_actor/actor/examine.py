"""Everything that one run with these settings needs, looked at before anybody asks for a run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from foundry_implementation_actor.actor.fitness import (
    artifacts_folder,
    asked,
    containment,
    git,
    listening,
    python,
    serving,
    silent,
    state_folder,
    temporary_folder,
)
from foundry_implementation_actor.actor.gated import gate_lacks, gate_root
from foundry_implementation_actor.actor.holding import enclosure
from foundry_implementation_actor.actor.price_file import prices_in
from foundry_implementation_actor.actor.publishing import publisher
from foundry_implementation_actor.actor.script_file import script_in
from foundry_implementation_actor.actor.settings import PASSED_ON, Settings, wrong_in
from foundry_implementation_actor.actor.variables import Variable
from foundry_implementation_actor.definition import conformance
from foundry_implementation_actor.domain.error import ActorError, ConfigError, SettingsError
from foundry_implementation_actor.domain.fitness import Finding, State
from foundry_implementation_actor.egress.loopback import mistaken
from foundry_implementation_actor.sandbox.none import NoSandbox
from foundry_implementation_actor.sidecar.config import CapabilityConfig
from foundry_implementation_actor.sidecar.lint import lint
from foundry_implementation_actor.sidecar.load import folder_of

TESTED_CLAUDE = "2.1.197"
"""The version of the CLI that the tests drive, as tools/package-lock.json pins it."""

DECLARED: Mapping[str, Variable] = {f.name: f.metadata["variable"] for f in fields(Settings) if f.metadata}
"""Each variable by the name of its setting."""


def examine(environ: Mapping[str, str], folder: Path | None = None) -> list[Finding]:
    """Everything that a run needs, in the order in which it needs it.

    Args:
        environ: the environment that the settings are read from.
        folder: an instance's folder, or its sidecar, to look at too.
    """
    settings = readable_settings(environ)
    findings = [
        *unusable(environ), python(), temporary_folder(), git(settings.path), containment(), sandbox(settings),
        *_hosts(settings), serving(), listening(settings.host), state_folder(settings.state),
        artifacts_folder(settings.artifacts), _forge(settings), *engine(settings), *_images(settings),
    ]  # fmt: skip
    return findings if folder is None else [*findings, *_instance(folder, settings)]


def readable_settings(environ: Mapping[str, str]) -> Settings:
    """The settings, with the default wherever a value cannot be used.

    Raises:
        SettingsError: there is no place for the state, not even a home directory.
    """
    values: dict[str, Any] = {}
    for name, variable in DECLARED.items():
        with contextlib.suppress(ValueError):
            values.update(variable.value_in(environ, name))
    return Settings(**values, passed_on={name: environ[name] for name in PASSED_ON if environ.get(name)})


def unusable(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Each variable whose value is refused; one good word when there is none."""
    wrong = wrong_in(environ)
    for what, write in wrong:
        name, _, seen = what.partition(" ")
        yield Finding(name, State.MISSING if seen.startswith("is not set") else State.WRONG, seen, write)
    if not wrong:
        yield Finding("settings", State.OK, "every variable that is set can be used")


def sandbox(settings: Settings) -> Finding:
    """What holds a session on this host, tried out."""
    try:
        held_by = enclosure(settings).sandbox
    except ActorError as error:
        return Finding("sandbox", State.MISSING, error.message, error.hint)
    names = ", ".join(gap.name for gap in held_by.gaps)
    if held_by.name == NoSandbox.name:
        seen = "SANDBOX=none: a session may read, change and reach whatever the actor's user may"
        return Finding("sandbox", State.WARNING, seen, "unset SANDBOX")
    seen = f"{held_by.name} holds a session (tried out)"
    gaps = f"; it cannot hold here: {names} (`doctor --sandbox` says what each means)" if names else ""
    return Finding("sandbox", State.OK, seen + gaps)


def _hosts(settings: Settings) -> Iterator[Finding]:
    """What SESSION_HOSTS lists in vain; with nothing to hold it, a session reaches this host's loopback as it is."""
    if settings.sandbox != NoSandbox.name:
        yield from mistaken(settings.session_hosts)


def engine(settings: Settings) -> Iterator[Finding]:
    """What the sessions of these settings need."""
    if settings.session_engine == "scripted":
        # Where none is set, `unusable` says so.
        if settings.session_script is not None:
            yield _script(settings.session_script)
        return
    yield _claude(settings)
    yield _login(settings)
    yield _money(settings)


def _claude(settings: Settings) -> Finding:
    mend = f"npm install -g @anthropic-ai/claude-code@{TESTED_CLAUDE}"
    done = asked(settings.path, "claude", "--version")
    found = re.search(r"\d+\.\d+\.\d+", done.text) if done and done.ok else None
    if found is None:
        return Finding("claude", State.MISSING, silent(done, "claude"), mend)
    seen = f"{found[0]} at {shutil.which('claude', path=settings.path)}"
    if found[0] != TESTED_CLAUDE:
        return Finding("claude", State.WARNING, f"{seen}; tested is {TESTED_CLAUDE}", mend)
    return Finding("claude", State.OK, seen)


def _login(settings: Settings) -> Finding:
    chosen = settings.model_credential
    if not chosen:
        mend = "set CLAUDE_CODE_OAUTH_TOKEN (from: claude setup-token), or ANTHROPIC_API_KEY to be billed by use"
        return Finding("model login", State.MISSING, "no credential is set", mend)
    given = {
        "CLAUDE_CODE_OAUTH_TOKEN": settings.oauth_token, "ANTHROPIC_API_KEY": settings.api_key,
        "ANTHROPIC_AUTH_TOKEN": settings.auth_token,
    }  # fmt: skip
    others = [name for name, value in given.items() if value and name != chosen]
    paid = "paid by a plan" if chosen == "CLAUDE_CODE_OAUTH_TOKEN" else "billed by use"
    if others:
        return Finding("model login", State.WARNING, f"{chosen} is used, {paid}", f"unset {' and '.join(others)}")
    return Finding("model login", State.OK, f"{chosen}, {paid}")


def _money(settings: Settings) -> Finding:
    try:
        rows = len(prices_in(settings.model_prices).table)
    except SettingsError as error:
        return Finding("cost limit", State.WRONG, error.seen, error.hint)
    if settings.max_cost_usd is not None:
        return Finding("cost limit", State.OK, f"{settings.max_cost_usd:g} US dollars a session, by {rows} prices")
    if settings.model_credential in {"", "CLAUDE_CODE_OAUTH_TOKEN"}:
        return Finding("cost limit", State.OK, "none: a session may cost what its turns and time allow")
    seen = "none, and sessions are billed by use: one may cost what its turns and time allow"
    return Finding("cost limit", State.WARNING, seen, "set MAX_COST_USD")


def _script(place: Path) -> Finding:
    try:
        script = script_in(place)
    except ActorError as error:
        state = State.WRONG if os.path.exists(place) else State.MISSING  # noqa: PTH110 - raises for no path at all
        return Finding("script", state, error.seen, error.hint or "correct the file, or SESSION_SCRIPT")
    count = len(script.sessions)
    return Finding("script", State.OK, f"{place}: {count} session{'s' if count > 1 else ''}")


def _forge(settings: Settings) -> Finding:
    if settings.github_token:
        return Finding("GITHUB_TOKEN", State.OK, f"is set, for {settings.git_base_url}")
    if settings.git_base_url.startswith("file:"):
        return Finding("GITHUB_TOKEN", State.OK, f"is not set, and {settings.git_base_url} needs none")
    mend = "set GITHUB_TOKEN to a token with contents:write on the capability's repository"
    return Finding("GITHUB_TOKEN", State.MISSING, f"is not set, and {settings.git_base_url} asks for it", mend)


def _images(settings: Settings) -> Iterator[Finding]:
    found = publisher(settings)
    if found is None:
        yield Finding("images", State.OK, "are off: none is built or published")
        return
    lacks = list(found.lacks())
    for missing in lacks:
        yield Finding("images", State.MISSING, missing.seen, missing.hint)
    if not lacks:
        reach = "may reach the network" if settings.build_network else "reaches no network"
        seen = f"{found.builder.name} builds them, {found.registry.address} takes them; what a Dockerfile runs {reach}"
        yield Finding("images", State.OK, seen)


def _instance(folder: Path, settings: Settings) -> Iterator[Finding]:
    report = lint(folder).joined(conformance.check(folder_of(folder)))
    config, wrong = None, report.errors
    try:
        config = CapabilityConfig.load(folder)
    except ConfigError as error:  # also what lint only warns of, such as a sidecar for another release
        wrong = wrong or [f"it cannot be run: {error}"]
    # An instance with something wrong is nowhere called well, even where half of it is.
    oks = [] if wrong else report.oks
    for lines, state in ((oks, State.OK), (report.warns, State.WARNING), (wrong, State.WRONG)):
        yield from (Finding("instance", state, line) for line in lines)
    if config is not None:
        yield from _fetchers(config, settings)
        yield from _gate(config, settings)


def _gate(config: CapabilityConfig, settings: Settings) -> Iterator[Finding]:
    try:
        root, lacks = gate_root(settings, config), list(gate_lacks(settings, config))
    except SettingsError as error:
        yield Finding("gate", State.WRONG, error.message, error.hint)
        return
    yield from (Finding("gate", State.MISSING, missing.message, missing.hint) for missing in lacks)
    if root is not None and not lacks:
        yield Finding("gate", State.OK, f"is the only pen of implementing sessions, for the app in {root or './'}")


def _fetchers(config: CapabilityConfig, settings: Settings) -> Iterator[Finding]:
    for entry in config.ground_in:
        program = config.expand(entry.fetch)[0]
        if shutil.which(program, path=settings.path) is None:
            seen = f"ground_in {entry.name!r} is fetched with {program!r}, which is not on PATH"
            yield Finding("instance", State.MISSING, seen, f"install {program}, or correct the fetch")
