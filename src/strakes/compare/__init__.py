"""Two runs side by side: which of their cells did the same work, and what their ratios allow to be said."""
