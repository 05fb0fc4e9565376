"""Where jobs live: one port, several homes, one suite that judges them."""
