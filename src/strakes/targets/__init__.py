"""The measured file systems: what is known of them, and the one directory on them in which strakes works."""
