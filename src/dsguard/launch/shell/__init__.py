"""Launch commands in shell scripts, Makefiles and Markdown; nothing is executed."""
