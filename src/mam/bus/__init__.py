"""MQTT: the journal's events on their way to a broker, and from a broker to those who wait."""
