"""How far what is proved of one launch carries: to which other sizes, and where it ends."""
