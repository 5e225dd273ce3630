"""Starting engines and supervising them: local now, one module per launcher."""
