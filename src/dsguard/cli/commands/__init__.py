"""The commands of ``dsguard``; each module registers one on the app."""
