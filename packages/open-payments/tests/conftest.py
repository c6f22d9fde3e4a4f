from tls_server import authority, names, new_http, server  # noqa: F401 - fixtures
