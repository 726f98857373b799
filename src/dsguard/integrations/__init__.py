"""Guards for people who never see the engine: callbacks of the trainers that make it."""
