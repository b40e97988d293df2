"""The deployment's files, checked and run for real: `make test-deploy`, as root.

Nouns:

- tools: the programs that the checks need, of Debian, PyPI and the Go module proxy.
- Containers: images and containers, made by buildah and run by podman.
- Rendered: what kustomize and Helm make of the manifests.
- Network: machines made of network namespaces, joined by a bridge.
"""
