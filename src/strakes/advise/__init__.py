"""Settings to paste, from a description of an application and measured figures."""
