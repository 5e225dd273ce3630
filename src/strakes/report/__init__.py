"""From a portrait to a document, a one-screen summary or one HTML file: pure functions, nothing is read but the portrait."""
