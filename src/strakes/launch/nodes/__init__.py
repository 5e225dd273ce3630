"""The nodes before anything is measured on them: what each is, how its clock and its link stand, what differs."""
