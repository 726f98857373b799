"""The arguments are parsed while a module is imported."""

import config
from config import args

print(config.BATCH, args.batch_size)
