"""Bad days and bad people: whatever comes in, whatever a model does, whoever writes the content."""
