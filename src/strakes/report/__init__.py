"""Render a portrait as a document, a one-screen summary or an HTML file. All functions are pure."""
