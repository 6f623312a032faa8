"""Every setting: its default, what is refused, and what never shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundry_implementation_actor.actor.settings import PASSED_ON, VARIABLES, Settings
from foundry_implementation_actor.domain.error import SettingsError
from foundry_implementation_actor.domain.run import Budget, Door
from foundry_implementation_actor.system.secrets import SECRET_VARIABLES

DEFAULTS = {
    "MAX_TURNS": "60",
    "SESSION_TIMEOUT_S": "1800",
    "ASSESS_MAX_TURNS": "15",
    "ASSESS_TIMEOUT_S": "600",
    "CLONE_TIMEOUT_S": "120",
    "VERIFY_TIMEOUT_S": "600",
    "FETCH_TIMEOUT_S": "120",
    "SILENCE_TIMEOUT_S": "300",
    "MAX_OUTPUT_BYTES": "268435456",
    "MAX_DISK_BYTES": "4294967296",
    "MAX_DISK_FILES": "500000",
    "MAX_PROCESSES": "256",
    "MAX_MEMORY_BYTES": "8589934592",
    "MAX_SESSIONS": "4",
    "MAX_CHANGED_FILES": "2000",
    "MAX_PATCH_BYTES": "33554432",
    "SHUTDOWN_GRACE_S": "25",
    "BUILD_TIMEOUT_S": "1800",
    "PORT": "8080",
}
SECRETS = ("GITHUB_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


def wrong(**environ: str) -> str:
    with pytest.raises(SettingsError) as refused:
        Settings.from_env(environ)
    return str(refused.value)


def test_the_table_names_every_number_with_its_default() -> None:
    assert {v.name: v.default for v in VARIABLES if v.name in DEFAULTS} == DEFAULTS
    assert all(v.what for v in VARIABLES)
    assert len({v.name for v in VARIABLES}) == len(VARIABLES)


def test_the_defaults_hold_when_nothing_is_set(tmp_path: Path) -> None:
    settings = Settings.from_env({"HOME": str(tmp_path)})
    limits = {name.lower(): int(value) for name, value in DEFAULTS.items() if name != "PORT"}
    assert settings.limits() == limits
    assert (settings.port, settings.host, settings.git_base_url) == (8080, "0.0.0.0", "https://github.com")
    assert settings.state == tmp_path / ".local/state/foundry-implementation-actor"
    assert (settings.session_engine, settings.images, settings.billing) == ("claude-code", True, "")
    assert (settings.secrets(), settings.model_login) == ((), "")


def test_an_environment_that_is_not_given_is_the_processes_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_TURNS", "7")
    assert Settings.from_env().max_turns == 7


def test_every_number_can_be_set() -> None:
    settings = Settings.from_env(dict.fromkeys(DEFAULTS, "3"))
    assert set(settings.limits().values()) == {3}
    assert settings.port == 3


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize("value", ["0", "-1", "1.5", "sixty", "", " ", "1e3", "0x10", "\u0661", "9" * 30, "9" * 10_000])
def test_a_value_that_is_no_positive_integer_is_refused_naming_itself(name: str, value: str) -> None:
    said = wrong(**{name: value})
    assert said.startswith(f"{name} must be a positive integer")
    assert len(said) < 250


def test_a_port_above_65535_is_refused() -> None:
    said = "PORT must be a positive integer of at most 65535, not '65536'"
    assert wrong(PORT="65536") == f"{said}; set PORT to a positive integer of at most 65535, or unset it"


def test_everything_that_is_wrong_is_said_at_once() -> None:
    said = wrong(MAX_TURNS="0", PORT="x", IMAGES="maybe", GIT_BASE_URL="github.com", SESSION_ENGINE="codex")
    assert [line.split()[0] for line in said.splitlines()] == [
        "MAX_TURNS",
        "GIT_BASE_URL",
        "SESSION_ENGINE",
        "IMAGES",
        "PORT",
    ]


@given(st.dictionaries(st.sampled_from([v.name for v in VARIABLES]), st.text(max_size=40)))
def test_any_environment_is_read_or_refused_by_name(environ: dict[str, str]) -> None:
    environ.setdefault("HOME", "/home/someone")
    try:
        Settings.from_env(environ)
    except SettingsError as error:
        said = str(error)
    else:
        return
    assert said.split(maxsplit=1)[0] in environ or "SESSION_SCRIPT" in said


# --- addresses and places --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_url", "kept"),
    [
        ("https://git.example.com", "https://git.example.com"),
        ("http://127.0.0.1:3000/", "http://127.0.0.1:3000"),
        ("https://example.com/forge/git//", "https://example.com/forge/git"),
        ("file:///srv/git", "file:///srv/git"),
        ("", "https://github.com"),
    ],
)
def test_a_forge_is_an_address(given_url: str, kept: str) -> None:
    assert Settings.from_env({"GIT_BASE_URL": given_url}).git_base_url == kept


@pytest.mark.parametrize(
    "url",
    ["github.com", "ssh://git@github.com", "git@github.com:acme", "https://", "file://host/srv", "file://srv", "file:",
     "https://u:hunter2@github.com", "https://hunter2@github.com", "https://github.com?token=hunter2",
     "https://github.com/#x", "https://github.com/a b", "https://[::1", "https://x:99999", "-oProxyCommand=x", "http:///x"],
)  # fmt: skip
def test_what_is_no_address_of_a_forge_is_refused_and_shows_no_login(url: str) -> None:
    said = wrong(GIT_BASE_URL=url)
    assert said.startswith("GIT_BASE_URL ")
    assert "hunter2" not in said


@pytest.mark.parametrize("name", ["ghcr.io/acme", "localhost:5000", "127.0.0.1:5000/a/b-c", "registry.example.com/x/"])
def test_a_registry_is_taken_as_it_stands_in_a_reference(name: str) -> None:
    assert Settings.from_env({"IMAGE_REGISTRY": name}).image_registry == name.rstrip("/")


@pytest.mark.parametrize("name", ["https://ghcr.io", "ghcr.io/Acme", "ghcr.io/a b", "/acme", "a//b", "x:y", "x@y"])
def test_what_cannot_stand_in_a_reference_is_no_registry(name: str) -> None:
    assert wrong(IMAGE_REGISTRY=name).startswith("IMAGE_REGISTRY must be host[:port][/path]")


def test_the_state_directory_follows_the_xdg_rules(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    name = "foundry-implementation-actor"
    assert Settings.from_env({**home, "XDG_STATE_HOME": "/var/lib/x"}).state == Path("/var/lib/x") / name
    assert Settings.from_env({**home, "XDG_STATE_HOME": "relative"}).state == tmp_path / ".local/state" / name
    assert Settings.from_env({**home, "ACTOR_STATE": "/srv/state/"}).state == Path("/srv/state")
    assert Settings.from_env({**home, "ACTOR_STATE": "state"}).state == Path.cwd() / "state"


@pytest.mark.parametrize("name", ["HOME", "XDG_STATE_HOME"])
def test_a_state_folder_that_is_not_set_is_held_to_what_one_that_is_set_is(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"{name} must be one line of text.*set ACTOR_STATE"):
        Settings.from_env({"HOME": "/home/someone", name: "/a\nb"})


def test_settings_made_by_hand_have_a_state_directory_too(home: Path) -> None:
    assert Settings(max_turns=3).state == home / ".local/state/foundry-implementation-actor"


def test_the_scripted_engine_needs_its_script() -> None:
    assert "SESSION_SCRIPT" in wrong(SESSION_ENGINE="scripted")
    settings = Settings.from_env({"SESSION_ENGINE": "scripted", "SESSION_SCRIPT": "/srv/play.yaml"})
    assert settings.session_script == Path("/srv/play.yaml")


def test_images_can_be_switched_off() -> None:
    assert Settings.from_env({"IMAGES": "off"}).images is False
    assert Settings.from_env({"IMAGES": "on"}).images is True


@pytest.mark.parametrize(
    ("environ", "builder"),
    [
        ({}, "buildah"),
        ({"BUILDKIT_HOST": "tcp://b:1"}, "buildctl"),
        ({"BUILDKIT_HOST": "tcp://b:1", "IMAGE_BUILDER": "buildah"}, "buildah"),
        ({"IMAGE_BUILDER": "buildctl"}, "buildctl"),
        ({"BUILDKIT_HOST": "tcp://b:1", "IMAGE_BUILDER": "none"}, "none"),
        ({"BUILDKIT_HOST": "tcp://b:1", "IMAGES": "off"}, "none"),
        ({"IMAGES": "off", "IMAGE_BUILDER": "none"}, "none"),
    ],
)
def test_what_builds_images_follows_from_three_variables(environ: dict[str, str], builder: str) -> None:
    assert Settings.from_env(environ).builder == builder


@pytest.mark.parametrize(("images", "builder"), [("off", "buildah"), ("off", "buildctl"), ("on", "none")])
def test_the_older_word_and_the_builder_may_not_contradict_each_other(images: str, builder: str) -> None:
    said = wrong(IMAGES=images, IMAGE_BUILDER=builder)
    assert said == f"IMAGES is {images}, and IMAGE_BUILDER={builder} contradicts it; unset one of the two"


# --- secrets and who pays --------------------------------------------------------------------------


def test_secrets_are_known_by_name_and_hidden_in_the_repr() -> None:
    settings = Settings.from_env({name: f"hidden-{name}" for name in SECRETS} | {"BILLING": "metered"})
    assert {variable.name for variable in VARIABLES if variable.secret} == set(SECRET_VARIABLES) == set(SECRETS)
    assert set(settings.secrets()) == {f"hidden-{name}" for name in SECRETS}
    assert "hidden" not in repr(settings)


def test_white_space_around_a_secret_is_dropped_and_inside_it_refused_without_showing_it() -> None:
    assert Settings.from_env({"GITHUB_TOKEN": " ghp_abc\n"}).github_token == "ghp_abc"
    for value in ("two words", "line\nbreak", "nul\0byte"):
        assert wrong(GITHUB_TOKEN=value) == (
            "GITHUB_TOKEN holds white space or control characters inside; set it to the bare token"
        )


def test_the_password_of_a_proxy_is_a_secret_and_the_proxy_is_passed_on() -> None:
    settings = Settings.from_env({"HTTPS_PROXY": "http://me:sesame@proxy:3128", "NO_PROXY": "localhost", "OTHER": "x"})
    assert settings.secrets() == ("sesame",)
    assert settings.passed_on == {"HTTPS_PROXY": "http://me:sesame@proxy:3128", "NO_PROXY": "localhost"}
    assert "sesame" not in repr(settings)
    assert {"SSL_CERT_FILE", "GIT_SSL_CAINFO", "https_proxy"} <= set(PASSED_ON)


@pytest.mark.parametrize("key", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"])
def test_a_plans_token_beside_a_metered_key_is_refused_unless_the_operator_says_so(key: str) -> None:
    both = {"CLAUDE_CODE_OAUTH_TOKEN": "plan-token", key: "metered-key"}
    said = wrong(**both)
    assert f"CLAUDE_CODE_OAUTH_TOKEN is set beside {key}, and" in said
    assert "billed to the metered account" in said
    assert "BILLING=metered" in said
    assert "plan-token" not in said
    assert "metered-key" not in said
    assert Settings.from_env({**both, "BILLING": "metered"}).model_login == "metered-key"


@pytest.mark.parametrize("name", SECRETS[1:])
def test_the_one_credential_is_the_login_of_the_model(name: str) -> None:
    settings = Settings.from_env({name: "a-token", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/", "GITHUB_TOKEN": "g"})
    assert (settings.model_credential, settings.model_login) == (name, "a-token")
    assert settings.model_base_url == "http://127.0.0.1:9"


def test_billing_knows_one_word() -> None:
    assert wrong(BILLING="yes") == "BILLING must be metered, not 'yes'; set BILLING to metered, or unset it"


# --- what the engine is given ----------------------------------------------------------------------


def test_the_engine_gets_the_contracts_keywords_and_the_settings() -> None:
    settings = Settings.from_env({"GITHUB_TOKEN": "g" * 8, "MAX_TURNS": "5", "FETCH_TIMEOUT_S": "9"})
    expected: dict[str, Any] = {
        "github_token": "g" * 8,
        "claude_bin": None,
        "clone_timeout": 120,
        "fetch_timeout": 9,
        "session_timeout": 1800,
        "max_turns": 5,
        "assess_timeout": 600,
        "assess_max_turns": 15,
        "settings": settings,
    }
    assert settings.engine_kwargs() == expected
    assert Settings.from_env({}).engine_kwargs()["github_token"] is None


def test_each_door_has_its_own_budget_and_names_the_variables_that_raise_it() -> None:
    numbers = {"OUTPUT_BYTES": 12, "DISK_BYTES": 13, "DISK_FILES": 14, "PROCESSES": 15, "MEMORY_BYTES": 16}
    at_both = {f"MAX_{name}": str(value) for name, value in numbers.items()}
    settings = Settings.from_env({"SILENCE_TIMEOUT_S": "11", "MAX_COST_USD": "2.5", **at_both})
    budget = Budget(60, "MAX_TURNS", 1800, "SESSION_TIMEOUT_S", 11, "SILENCE_TIMEOUT_S", 2.5, 12, 13, 14, 15, 16)
    assert settings.budget(Door.IMPLEMENT) == budget
    own: dict[str, Any] = {
        "turns": 15,
        "turns_variable": "ASSESS_MAX_TURNS",
        "clock_s": 600,
        "clock_variable": "ASSESS_TIMEOUT_S",
    }
    assert settings.budget(Door.ASSESS) == replace(budget, **own)


@pytest.mark.parametrize("value", ["0", "0.0", "-1", "1e3", "inf", "nan", ".5", "1,5", "$3", "9" * 30, "0.0000001"])
def test_a_cost_that_is_no_positive_number_is_refused_naming_itself(value: str) -> None:
    assert wrong(MAX_COST_USD=value).startswith("MAX_COST_USD must be a positive number of US dollars")


def test_a_cost_is_a_decimal_number_and_without_one_there_is_no_limit() -> None:
    given = Settings.from_env({"MAX_COST_USD": " 2.50 "})
    assert (given.max_cost_usd, given.limits()["max_cost_usd"]) == (2.5, 2.5)
    for unset in ({}, {"MAX_COST_USD": ""}):
        settings = Settings.from_env(unset)
        assert settings.budget(Door.IMPLEMENT).cost_usd == 0
        assert "max_cost_usd" not in settings.limits()


def test_work_that_is_not_pushed_is_kept_below_the_state_unless_elsewhere(tmp_path: Path) -> None:
    state = {"ACTOR_STATE": str(tmp_path)}
    assert Settings.from_env(state).artifacts == tmp_path / "artifacts"
    assert Settings.from_env({**state, "RUN_ARTIFACTS": "/var/kept"}).artifacts == Path("/var/kept")
