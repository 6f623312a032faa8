"""`python -m foundry_implementation_actor.cli`: the command line where its script is not on PATH."""

from __future__ import annotations

import sys

from foundry_implementation_actor.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
