"""Applying the fixes that findings offer, to a text and never to more than they name."""
