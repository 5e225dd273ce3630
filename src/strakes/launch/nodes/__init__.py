"""The nodes before anything is measured on them: what each one is, how its clock stands, how fast its link is, and what differs."""
