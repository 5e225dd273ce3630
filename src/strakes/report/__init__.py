"""From a portrait to a document, a one-screen summary or one HTML file: pure functions of the portrait."""
