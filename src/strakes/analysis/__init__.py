"""From a stored run to what it shows: cells collected, warnings raised, findings judged. Pure."""
