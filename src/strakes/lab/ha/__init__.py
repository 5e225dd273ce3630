"""A pair of servers that take over from each other, with real Corosync, Pacemaker and IPMI fencing."""
