"""Where a task is worked on: the mirror, the private tree, its grounding, and what changed in it."""
