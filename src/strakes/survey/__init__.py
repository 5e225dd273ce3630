"""Running studies within a budget: pilot, interleaved blocks, confirmation of what is to be advised."""
