"""What each failure will do: Pacemaker's own policy engine, behind a small model of cables, power and disks."""
