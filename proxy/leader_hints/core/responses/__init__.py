"""What is read of each response, and what becomes of it: it passes, changed or not, or waits.

Bugs about single responses are here: an error that is not noticed, a response in a wrong version, a
broker's address in it. Bugs about bytes of many messages are in core/link, about the layout of one
message in apis, about the choice of a hint in core/hints.

- response_table: which reader reads which responses; outcome: what the readers return.
- fetch_responses, produce_responses, metadata_responses, api_versions_responses: the readers.
- addresses: a virtual cluster's addresses in place of the brokers'.
- response_notes: what is noted whatever becomes of a response; passthrough_scan: what is read of
  one in passing; settling_scan: the same where errors are to wait until they are settled.
"""
