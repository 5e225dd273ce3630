"""Drills: cause a fault on a live file system while clients work, measure the outage, and undo the fault."""
