"""What a plan consists of: one module for each program that is configured."""
