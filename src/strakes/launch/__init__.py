"""Starting engines and supervising them, one module per launcher."""
