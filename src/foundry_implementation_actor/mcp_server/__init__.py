"""The gate for any coding agent that speaks the Model Context Protocol."""
