"""A drill: clients at work on a live system, a fault, and what it was for them."""
