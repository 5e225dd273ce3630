"""Protection of other users: a probe times small operations, and the load is reduced when they become slow."""
