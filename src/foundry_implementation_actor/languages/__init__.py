"""One module for each language the gate judges; pure: they build a Command and read a Completed."""
