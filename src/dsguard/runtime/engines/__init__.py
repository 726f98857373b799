"""The engines that a guard can be put on, each translated into the same moments."""
