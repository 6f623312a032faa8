"""The W3C `traceparent` header, read and written (https://www.w3.org/TR/trace-context/)."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from foundry_implementation_actor.system.journal import new_correlation_id

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


def correlation_of(headers: Sequence[str]) -> str:
    """The one correlation id of a request that came with these `traceparent` headers.

    It is the caller's trace id. A header that is absent, malformed or given twice starts a new trace,
    as the specification has it.
    """
    match = _TRACEPARENT.fullmatch(headers[0].strip()) if len(headers) == 1 else None
    return match[2] if match and _is_usable(match) else new_correlation_id()


def traceparent(correlation_id: str) -> str:
    """The header to hand on for this trace; an id that is no trace id is replaced by a new one."""
    is_trace_id = re.fullmatch(r"[0-9a-f]{32}", correlation_id) and int(correlation_id, 16)
    return f"00-{correlation_id if is_trace_id else new_correlation_id()}-{secrets.token_hex(8)}-01"


def _is_usable(match: re.Match[str]) -> bool:
    version, trace_id, parent_id, more = match.groups()
    # Version ff is forbidden; only versions after 00 may carry further parts.
    known = version != "ff" and not (version == "00" and more)
    return known and bool(int(trace_id, 16)) and bool(int(parent_id, 16))
