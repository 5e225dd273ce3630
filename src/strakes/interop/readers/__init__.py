"""One module per foreign format: text in, :class:`strakes.interop.foreign.Foreign` out."""
