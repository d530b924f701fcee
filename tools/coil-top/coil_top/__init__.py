"""coil-top: reads the admin socket of a program that uses coil (io_context_options::admin_socket)."""
