"""The ports of the framework: the engine and the handler behind its doors, and the settings."""
