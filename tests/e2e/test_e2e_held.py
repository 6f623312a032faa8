"""One long session of the real command line in each sandbox: ordinary work lands, every way out is refused at once."""

from __future__ import annotations


