"""What stood in a proxy's address and was shown once, or broke the start."""

from __future__ import annotations

import pytest

from foundry_implementation_actor.actor.settings import Settings


@pytest.mark.parametrize(
    ("address", "secrets"),
    [
        ("http://user:pass%2Fword@proxy:3128", {"pass%2Fword", "pass/word"}),
        ("user:password@proxy:3128", {"password"}),
        ("http://a-token-alone@proxy:3128", {"a-token-alone"}),
        ("http://user:p@ss@proxy:3128", {"p@ss"}),
        ("http://[proxy", set()),
        ("http://user:password@[proxy", {"password"}),
        ("http://proxy:3128", set()),
    ],
)
def test_the_login_for_a_sites_proxy_is_a_secret_however_it_is_written(address: str, secrets: set[str]) -> None:
    environment = {"HTTPS_PROXY": address, "HOME": "/nonexistent"}
    assert set(Settings.from_env(environment).secrets()) == secrets
