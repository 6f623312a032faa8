"""The pinned `claude` command line that `make test` installs under tools/."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

_PACKAGES = Path(__file__).parents[2] / "tools" / "node_modules" / "@anthropic-ai"
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


def claude_binary() -> Path:
    """The native program itself, so that no Node runs; skips the test where it is not installed."""
    machine = _MACHINES.get(platform.machine(), platform.machine())
    binary = _PACKAGES / f"claude-code-linux-{machine}" / "claude"
    if not binary.is_file():
        pytest.skip("the pinned claude is not installed; run `make test`, or `sh scripts/setup-claude`")
    return binary
