"""CephFS as a lab."""
