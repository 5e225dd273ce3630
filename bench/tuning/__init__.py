"""Quality of `strakes tune`: landscapes (all settings of a grid) are measured once and searched many times."""
