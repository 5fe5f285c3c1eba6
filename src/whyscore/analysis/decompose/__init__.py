"""MuLER: how much of what a system loses is lost on nouns, names, numbers and other features."""
