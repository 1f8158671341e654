"""Generated C on the host, compiled and called through ctypes."""
