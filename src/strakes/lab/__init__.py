"""Disposable real file systems on this machine: started from distribution packages, gone without a trace afterwards."""
