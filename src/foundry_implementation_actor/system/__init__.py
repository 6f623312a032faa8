"""The only hands of this package: processes, git, files, secrets and the journal."""
