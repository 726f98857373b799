"""Numbers."""

BATCH_SIZE = 6
LEARNING_RATE = 5e-4
WARMUP = {"steps": 100}
