"""Every setting of the actor, read from the environment once and in this one place.

Each variable is one field of `Settings`, declared with its name, its default, what it is for and how
its text is read. The table that `doctor` prints is that same declaration (`VARIABLES`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from foundry_implementation_actor.actor.variables import (
    Read,
    Variable,
    address,
    choice,
    count,
    dollars,
    hosts,
    location,
    plain,
    refused,
    registry,
    secret,
    shown,
    switch,
    unchanged,
)
from foundry_implementation_actor.domain.document import Wrong
from foundry_implementation_actor.domain.error import SettingsError
from foundry_implementation_actor.domain.run import Budget, Door
from foundry_implementation_actor.egress.allowed import Allowed

_DAY = 24 * 60 * 60
_UNSET = Path()
_STATE_FOLDER = "foundry-implementation-actor"
_ARTIFACTS_FOLDER = "artifacts"
_ARTIFACTS_DEFAULT = f"ACTOR_STATE + /{_ARTIFACTS_FOLDER}"
_STATE_DEFAULT = f"$XDG_STATE_HOME (or ~/.local/state) + /{_STATE_FOLDER}"

# What git, the grounding tools and the model's client need to get out through a site's proxy and to
# trust its certificates. Handed on as they are, under the names that those programs know.
PASSED_ON = (
    "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
)  # fmt: skip


def _setting(name: str, default: Any, read: Read, what: str, *, shown: str = "") -> Any:
    hidden = read is secret
    variable = Variable(name, shown or str(default or ""), what, secret=hidden, read=read)
    return field(default=default, repr=not hidden, metadata={"variable": variable})


@dataclass(frozen=True)
class Settings:
    """The actor's settings; the defaults stand for a variable that is not set.

    Times are whole seconds, sizes are bytes. An empty text, or None for the script, means that nothing was given.
    """

    max_turns: int = _setting("MAX_TURNS", 60, count(10_000), "turns of an implementing session")
    session_timeout_s: int = _setting("SESSION_TIMEOUT_S", 1800, count(_DAY), "seconds of an implementing session")
    assess_max_turns: int = _setting("ASSESS_MAX_TURNS", 15, count(10_000), "turns of an assessing session")
    assess_timeout_s: int = _setting("ASSESS_TIMEOUT_S", 600, count(_DAY), "seconds of an assessing session")
    clone_timeout_s: int = _setting("CLONE_TIMEOUT_S", 120, count(_DAY), "seconds for getting the repository")
    verify_timeout_s: int = _setting("VERIFY_TIMEOUT_S", 600, count(_DAY), "seconds for one component's `verify`")
    fetch_timeout_s: int = _setting("FETCH_TIMEOUT_S", 120, count(_DAY), "seconds for each grounding command")
    silence_timeout_s: int = _setting("SILENCE_TIMEOUT_S", 300, count(_DAY), "seconds a session may say nothing")
    max_cost_usd: float | None = _setting(
        "MAX_COST_USD", None, dollars, "US dollars that one session may cost; without it there is no limit"
    )
    model_prices: Path | None = _setting(  # noqa: RUF009 - declares a field
        "MODEL_PRICES", None, location, "JSON file of prices that MAX_COST_USD is counted by, beside the shipped ones"
    )
    max_output_bytes: int = _setting(
        "MAX_OUTPUT_BYTES", 256 * 1024 * 1024, count(2**40), "bytes that a session may print"
    )
    max_disk_bytes: int = _setting(
        "MAX_DISK_BYTES", 4 * 1024 * 1024 * 1024, count(2**50), "bytes that a session may add to the disk"
    )
    max_disk_files: int = _setting("MAX_DISK_FILES", 500_000, count(10**9), "files that a session may add to the disk")
    max_processes: int = _setting("MAX_PROCESSES", 256, count(10**6), "processes that a session may have at once")
    max_memory_bytes: int = _setting(
        "MAX_MEMORY_BYTES", 8 * 1024 * 1024 * 1024, count(2**50), "bytes of memory of all processes of a session"
    )
    max_sessions: int = _setting("MAX_SESSIONS", 4, count(256), "sessions at once; the others wait in order")
    max_changed_files: int = _setting("MAX_CHANGED_FILES", 2000, count(1_000_000), "files that one change may touch")
    max_patch_bytes: int = _setting("MAX_PATCH_BYTES", 32 * 1024 * 1024, count(2**40), "bytes of all changed files")
    shutdown_grace_s: int = _setting("SHUTDOWN_GRACE_S", 25, count(_DAY), "seconds that runs get to end after SIGTERM")
    git_base_url: str = _setting(
        "GIT_BASE_URL", "https://github.com", address("http", "https", "file"), "where <owner>/<repo>.git is found"
    )
    state: Path = _setting("ACTOR_STATE", _UNSET, location, "mirrors, trees and answers", shown=_STATE_DEFAULT)  # noqa: RUF009 - declares a field
    artifacts: Path = _setting(  # noqa: RUF009 - declares a field
        "RUN_ARTIFACTS", _UNSET, location, "where work that was not pushed is kept", shown=_ARTIFACTS_DEFAULT
    )
    session_engine: str = _setting(
        "SESSION_ENGINE",
        "claude-code",
        choice("claude-code", "scripted"),
        "what works: claude-code or scripted",
    )
    session_script: Path | None = _setting("SESSION_SCRIPT", None, location, "file of the scripted engine")  # noqa: RUF009 - declares a field
    sandbox: str = _setting(
        "SANDBOX",
        "auto",
        choice("auto", "bubblewrap", "landlock", "none"),
        "what holds a session: auto takes the strongest that works here",
    )
    session_hosts: Allowed = _setting(  # noqa: RUF009 - declares a field
        "SESSION_HOSTS",
        Allowed(),
        hosts,
        "further hosts that a session may reach, as `host` or `host:port`; * opens all",
        shown="the model's host",
    )
    session_writes: str = _setting(
        "SESSION_WRITES",
        "free",
        choice("free", "gate"),
        "gate: the landing gate is every implementing session's only pen",
    )
    image_builder: str = _setting(
        "IMAGE_BUILDER",
        "auto",
        choice("auto", "buildctl", "buildah", "none"),
        "what builds images: auto takes buildctl where BUILDKIT_HOST is set, and buildah elsewhere",
    )
    images: bool = _setting("IMAGES", True, switch, "off: the older word for IMAGE_BUILDER=none", shown="on")
    image_registry: str = _setting("IMAGE_REGISTRY", "", registry, "registry that images go to, without a scheme")
    buildkit_host: str = _setting("BUILDKIT_HOST", "", plain, "address of the BuildKit daemon")
    registry_tls: bool = _setting("REGISTRY_TLS", True, switch, "off: the registry speaks plain HTTP", shown="on")
    build_network: bool = _setting(
        "BUILD_NETWORK", False, switch, "on: what a Dockerfile runs may reach the network", shown="off"
    )
    build_timeout_s: int = _setting("BUILD_TIMEOUT_S", 1800, count(_DAY), "seconds for building one image")
    docker_config: str = _setting("DOCKER_CONFIG", "", plain, "directory of the registry login (config.json)")
    port: int = _setting("PORT", 8080, count(65535), "port that serve listens on")
    host: str = _setting("HOST", "0.0.0.0", plain, "address that serve listens on")  # noqa: S104 - a Pod's address is not known before it runs
    billing: str = _setting(
        "BILLING", "", choice("metered"), "metered: bill the API key although a plan's token is set"
    )
    github_token: str = _setting("GITHUB_TOKEN", "", secret, "reads and pushes the repository")
    oauth_token: str = _setting("CLAUDE_CODE_OAUTH_TOKEN", "", secret, "the model, paid by a plan")
    api_key: str = _setting("ANTHROPIC_API_KEY", "", secret, "the model, paid by use")
    auth_token: str = _setting("ANTHROPIC_AUTH_TOKEN", "", secret, "the model behind a gateway, paid by use")
    model_base_url: str = _setting("ANTHROPIC_BASE_URL", "", address("http", "https"), "another address of the model")
    path: str = _setting("PATH", "/usr/local/bin:/usr/bin:/bin", unchanged, "where git, claude and buildctl are found")
    passed_on: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.state is _UNSET:
            object.__setattr__(self, "state", _default_state(os.environ))
        if self.artifacts is _UNSET:
            object.__setattr__(self, "artifacts", self.state / _ARTIFACTS_FOLDER)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read every setting; `environ` is the process's own environment when not given.

        Raises:
            SettingsError: naming every variable whose value cannot be used, one a line.
        """
        environ = os.environ if environ is None else environ
        values, wrong = _read(environ)
        if len(wrong) == 1:
            raise SettingsError(wrong[0].what, hint=wrong[0].write)
        if wrong:
            raise SettingsError("\n".join(f"{what}; {write}" for what, write in wrong))
        values["passed_on"] = {name: environ[name] for name in PASSED_ON if environ.get(name)}
        if "state" not in values:
            values["state"] = _default_state(environ)
        return cls(**values)

    def engine_kwargs(self) -> dict[str, Any]:
        """The keyword arguments of `ClaudeCodeEngine`: the contract's eight and these settings."""
        return {
            "github_token": self.github_token or None,
            "claude_bin": None,
            "clone_timeout": self.clone_timeout_s,
            "fetch_timeout": self.fetch_timeout_s,
            "session_timeout": self.session_timeout_s,
            "max_turns": self.max_turns,
            "assess_timeout": self.assess_timeout_s,
            "assess_max_turns": self.assess_max_turns,
            "settings": self,
        }

    def budget(self, door: Door) -> Budget:
        """What one session at this door may spend."""
        if door is Door.ASSESS:
            limits = (self.assess_max_turns, "ASSESS_MAX_TURNS", self.assess_timeout_s, "ASSESS_TIMEOUT_S")
        else:
            limits = (self.max_turns, "MAX_TURNS", self.session_timeout_s, "SESSION_TIMEOUT_S")
        return Budget(
            *limits, silence_s=self.silence_timeout_s, silence_variable="SILENCE_TIMEOUT_S",
            cost_usd=self.max_cost_usd or 0.0, output_bytes=self.max_output_bytes,
            disk_bytes=self.max_disk_bytes, disk_files=self.max_disk_files,
            processes=self.max_processes, memory_bytes=self.max_memory_bytes,
        )  # fmt: skip

    def limits(self) -> dict[str, int | float]:
        """Every numeric setting that is set, by its field's name, for the record of a start; the port is not one."""
        numbers = {name: value for name in _DECLARED if type(value := getattr(self, name)) in {int, float}}
        return {name: value for name, value in numbers.items() if name != "port"}

    @property
    def builder(self) -> str:
        """What builds images: `buildctl`, `buildah`, or `none`."""
        if not self.images:
            return "none"
        found = "buildctl" if self.buildkit_host else "buildah"
        return found if self.image_builder == "auto" else self.image_builder

    def secrets(self) -> tuple[str, ...]:
        """Every secret value there is, to be hidden wherever it would be shown."""
        named = [getattr(self, name) for name, variable in _DECLARED.items() if variable.secret]
        proxies = [value for name, value in self.passed_on.items() if name.lower().endswith("proxy")]
        found = (*named, *(part for proxy in proxies for part in _login_in(proxy)))
        return tuple(dict.fromkeys(value for value in found if value))

    @property
    def model_credential(self) -> str:
        """The variable whose credential sessions use, or an empty text when there is none.

        A plan's token comes first, unless the operator asked for the metered account.
        """
        metered = [("ANTHROPIC_API_KEY", self.api_key), ("ANTHROPIC_AUTH_TOKEN", self.auth_token)]
        plan = [("CLAUDE_CODE_OAUTH_TOKEN", self.oauth_token)]
        order = metered + plan if self.billing == "metered" else plan + metered
        return next((name for name, value in order if value), "")

    @property
    def model_login(self) -> str:
        """The value of `model_credential`, or an empty text."""
        given = {
            "CLAUDE_CODE_OAUTH_TOKEN": self.oauth_token,
            "ANTHROPIC_API_KEY": self.api_key,
            "ANTHROPIC_AUTH_TOKEN": self.auth_token,
        }
        return given.get(self.model_credential, "")


_DECLARED: dict[str, Variable] = {f.name: f.metadata["variable"] for f in fields(Settings) if "variable" in f.metadata}

VARIABLES: tuple[Variable, ...] = tuple(_DECLARED.values())
"""The table of all variables, in the order in which they are declared."""


def _login_in(proxy: str) -> tuple[str, str]:
    """The secret of a proxy's address as it stands there and as it is sent; it need not be an address."""
    login = proxy.rpartition("@")[0].rpartition("//")[2]
    secret = login.partition(":")[2] or login
    return secret, unquote(secret)


def _default_state(environ: Mapping[str, str]) -> Path:
    # The XDG specification says that a relative value is to be ignored.
    given = _home("XDG_STATE_HOME", environ.get("XDG_STATE_HOME", ""))
    if given.is_absolute():
        return given / _STATE_FOLDER
    try:
        home = _home("HOME", environ.get("HOME") or str(Path.home()))
    except RuntimeError as error:
        said = "ACTOR_STATE is not set and this user has no home directory"
        raise SettingsError(said, hint="set ACTOR_STATE to a directory") from error
    return home / ".local" / "state" / _STATE_FOLDER


def _home(name: str, text: str) -> Path:
    """A directory below which the state may be, held to what ACTOR_STATE is held to."""
    if not text.isprintable():
        said = f"{name} must be one line of text, not {shown(text)}, and the actor's state would be below it"
        raise SettingsError(said, hint="set ACTOR_STATE to a directory")
    return Path(text)


def wrong_in(environ: Mapping[str, str]) -> list[Wrong]:
    """Every variable that cannot be used: its name and what is wrong with it, and what to do."""
    return _read(environ)[1]


def _read(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[Wrong]]:
    values: dict[str, Any] = {}
    wrong: list[Wrong] = []
    for name, variable in _DECLARED.items():
        try:
            values.update(variable.value_in(environ, name))
        except ValueError as error:
            wrong.append(refused(variable.name, str(error)))
    return values, wrong + _contradictions(values)


def _contradictions(values: Mapping[str, Any]) -> list[Wrong]:
    wrong = []
    if values.get("session_engine") == "scripted" and not values.get("session_script"):
        said = "SESSION_SCRIPT is not set, and SESSION_ENGINE=scripted plays that file"
        wrong.append(Wrong(said, "set SESSION_SCRIPT to a script"))
    chosen = values.get("image_builder", "auto")
    if values.get("images") is False and chosen not in {"auto", "none"}:
        wrong.append(Wrong(f"IMAGES is off, and IMAGE_BUILDER={chosen} contradicts it", "unset one of the two"))
    if values.get("images") is True and chosen == "none":
        wrong.append(Wrong("IMAGES is on, and IMAGE_BUILDER=none contradicts it", "unset one of the two"))
    metered = [_DECLARED[name].name for name in ("api_key", "auth_token") if values.get(name)]
    if values.get("oauth_token") and metered and values.get("billing") != "metered":
        names = " and ".join(metered)
        said = f"CLAUDE_CODE_OAUTH_TOKEN is set beside {names}, and sessions would silently be billed "
        write = f"unset {names}, or set BILLING=metered if that is what you want"
        wrong.append(Wrong(f"{said}to the metered account", write))
    return wrong
