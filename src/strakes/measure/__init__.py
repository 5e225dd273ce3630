"""One measuring act: directories made as a cell wants them, its plan run once, and what came of it."""
