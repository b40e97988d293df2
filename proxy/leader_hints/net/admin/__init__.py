"""The admin server: metrics, health, status and the kill switch over HTTP.

Bugs about an HTTP request that is answered wrongly, or a wrong readiness, are here.

- admin: HTTP; admin_guard: requests that are refused, since a web page might have made them.
- admin_pages: what is at which path; readiness: whether each route can serve clients now.
- shared_work: what many ask for at the same time is made once.
"""
