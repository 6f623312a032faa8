"""The actor's definition: its four cards, a use's own copies of them, and whether those agree."""
