"""What this package is called where packages are installed from."""

from __future__ import annotations

DISTRIBUTION = "foundry-implementation-actor"
FIRST_RELEASE = "0.8"
"""The first release of this program; what stands under the same name before it is another one."""
