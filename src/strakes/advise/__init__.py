"""Settings for an application, from its description and measured figures."""
