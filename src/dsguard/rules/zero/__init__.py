"""Rules of the zero family: ZeRO stages, offload, ZenFlow and parallel groups."""
