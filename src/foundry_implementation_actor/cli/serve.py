"""`serve`: the actor behind HTTP."""

from __future__ import annotations

import click

from foundry_implementation_actor.service.serve import serve as serve_folder

_EPILOG = """\b
Examples:
  foundry-implementation-actor serve
  PORT=9000 MAX_SESSIONS=2 foundry-implementation-actor serve ./my-capability
  curl -s localhost:8080/health
  curl -s localhost:8080/assess-task -d '{"from": "me", "payload": {"task_id": "T-1", ...}}'

\b
Exit codes: 0 asked to end, and ended in order, 2 the sidecar or the cards
cannot be used, 3 this host or its settings are not fit.
"""


@click.command("serve", epilog=_EPILOG)
@click.argument("folder", default=".", type=click.Path())
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to listen on instead of PORT (8080); 0 takes a free one."
)
def serve(folder: str, port: int | None) -> None:
    """Answer the doors of the actor in FOLDER over HTTP until SIGTERM or Ctrl-C.

    FOLDER holds actor-agentic-context.yaml. Records go to stdout, one JSON object a line;
    "actor-started" names the port and every limit. At SIGTERM runs in flight get
    SHUTDOWN_GRACE_S seconds to end. Settings are environment variables; `doctor` lists them.
    """
    serve_folder(folder, port)
