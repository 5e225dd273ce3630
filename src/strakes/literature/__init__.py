"""Tables and figures of the published studies, each given once."""
