"""The portrait of a file system: estimates, findings, figures and recommendations as values."""
