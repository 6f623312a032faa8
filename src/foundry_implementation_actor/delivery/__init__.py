"""How work leaves: the commit, the branch on the forge, the images."""
