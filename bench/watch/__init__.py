"""How well `strakes watch` finds what changed, on a year that others recorded."""
