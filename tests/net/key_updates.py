"""What makes the keys of a TLS 1.3 connection change, as Python itself cannot."""

import ctypes
import ctypes.util
import ssl


def key_updates(
    end: ssl.SSLSocket | ssl.SSLObject, count: int, data: bytes = b"", *, asks: bool = True
) -> bytes:
    """Return so many messages KeyUpdate, as ``end`` would send them, which sends nothing more.

    ``data``: what is sent behind each. ``asks``: each asks for one in return.
    """
    libssl = ctypes.CDLL(ctypes.util.find_library("ssl"))
    libcrypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
    for function in (libcrypto.BIO_s_mem, libcrypto.BIO_new):
        function.restype = ctypes.c_void_p
    # The first field of Python's own, behind the head of any object and the socket.
    inner = end._sslobj  # type: ignore[union-attr]
    handle = ctypes.c_void_p(ctypes.c_void_p.from_address(id(inner) + 24).value)
    memory = ctypes.c_void_p(libcrypto.BIO_new(ctypes.c_void_p(libcrypto.BIO_s_mem())))
    libssl.SSL_set0_wbio(handle, memory)
    for _ in range(count):
        assert libssl.SSL_key_update(handle, int(asks)) == 1
        assert libssl.SSL_do_handshake(handle) == 1
        assert not data or libssl.SSL_write(handle, data, len(data)) == len(data)
    room = ctypes.create_string_buffer((64 + len(data)) * count)
    size = libcrypto.BIO_read(memory, room, len(room))
    assert size > 0
    return room.raw[:size]
