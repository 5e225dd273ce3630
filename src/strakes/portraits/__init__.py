"""The portrait of any stored run, whichever kind it is."""
