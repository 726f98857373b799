"""The launch command and its surroundings, read the way the launcher will read them."""
