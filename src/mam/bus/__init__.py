"""MQTT: sends the journal's events to a broker, and receives them for subscribers."""
