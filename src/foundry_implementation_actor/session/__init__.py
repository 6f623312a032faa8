"""One session of an engine: what it is asked, how it is watched, and what its last words mean."""
