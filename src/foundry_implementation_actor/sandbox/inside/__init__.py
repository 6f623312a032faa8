"""What a self-check tries inside of a sandbox, all of it in one process. Standard library only."""
