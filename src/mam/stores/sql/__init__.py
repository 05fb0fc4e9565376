"""What stores in a database share: how queries are kept, and the port in terms of them."""
