"""Facts about nanobot: its versions and classes, its config file, the prompts that it writes."""
