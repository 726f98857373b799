"""Records of runs: from the files that a guard wrote to what there is to see in them."""
