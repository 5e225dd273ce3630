"""Files of a plan: one module for each program that is configured."""
