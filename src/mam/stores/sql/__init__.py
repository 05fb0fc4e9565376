"""What the SQL stores share: named queries, rows, and the port in terms of them."""
