"""SaslHandshake: how a client announces its mechanism.

v0: the tokens that follow are length-prefixed but no Kafka requests (KIP-43): from there on
the stream cannot be read. v1 (KIP-152): the tokens travel in SaslAuthenticate requests.
"""

#: The version after which the stream holds bare tokens.
BARE_TOKENS_VERSION = 0
