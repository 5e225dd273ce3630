"""Several hosts on one machine, and a batch system on them."""
