"""The rules of the guard, one module each with its page beside it; nothing lists them."""
